import type { GetObjectCommandOutput } from '@aws-sdk/client-s3'
import { ConfigurationError } from '../errors.ts'
import type { BlobStore } from './store.ts'

/** What is used of an `S3Client` of `@aws-sdk/client-s3`. */
export interface S3Sender {
  /** Sends a command of the same package. */
  send(command: never): Promise<unknown>
}

/** Where in S3, or in what speaks as it does, files are kept. */
export interface S3StoreOptions {
  /**
   * An `S3Client` of `@aws-sdk/client-s3`, set up by the application: region, endpoint, credentials, retries. It is never closed here.
   */
  readonly client: S3Sender
  /** A bucket that exists. It need not be public, and should not be. */
  readonly bucket: string
  /** What keys begin with, such as `chats/`. Default: nothing. */
  readonly prefix?: string | undefined
}

/**
 * Keeps each file as an object whose key is the prefix and its digest, for processes on several machines. Needs `@aws-sdk/client-s3`, which
 * the application installs. What S3 answers with comes out of the store's methods as it is, but for an object that is not there. (E60)
 * @throws {ConfigurationError} for a client that can't send, or an empty bucket.
 */
export function s3Store({ client, bucket, prefix = '' }: S3StoreOptions): BlobStore {
  if (typeof client?.send !== 'function' || typeof bucket !== 'string' || bucket === '' || typeof prefix !== 'string') {
    throw new ConfigurationError(
      's3Store() needs { client: new S3Client(...), bucket: the name of one }, and may have a prefix, which is a text.',
    )
  }
  const at = (digest: string) => ({ Bucket: bucket, Key: `${prefix}${digest}` })
  const send = (command: object) => client.send(command as never)
  return {
    async put(digest, bytes) {
      const { PutObjectCommand } = await commands()
      await send(new PutObjectCommand({ ...at(digest), Body: bytes, ContentLength: bytes.byteLength }))
    },
    async get(digest) {
      const { GetObjectCommand } = await commands()
      const answer = await ifThere(send(new GetObjectCommand(at(digest))))
      if (answer === null) return null
      return (await (answer as GetObjectCommandOutput).Body?.transformToByteArray()) ?? new Uint8Array()
    },
    async has(digest) {
      const { HeadObjectCommand } = await commands()
      return (await ifThere(send(new HeadObjectCommand(at(digest))))) !== null
    },
    async delete(digest) {
      const { DeleteObjectCommand } = await commands()
      await ifThere(send(new DeleteObjectCommand(at(digest))))
    },
  }
}

/** Loaded with its first use: most applications have no use for it. */
async function commands() {
  try {
    return await import('@aws-sdk/client-s3')
  } catch (error) {
    throw new ConfigurationError('s3Store() needs the package @aws-sdk/client-s3: install it in the application.', {
      cause: error,
    })
  }
}

/** Null for an object that is not there; a bucket that is not there is a mistake, which comes out. */
async function ifThere(answer: Promise<unknown>): Promise<unknown> {
  try {
    return await answer
  } catch (error) {
    const name = error instanceof Error ? error.name : ''
    // The answer to HEAD has no body, so it can't say more than that.
    if (name === 'NoSuchKey' || name === 'NotFound') return null
    throw error
  }
}
