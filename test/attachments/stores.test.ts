import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import { expect } from 'chai'
import S3rver from 's3rver'
import { type BlobStore, ConfigurationError, diskStore, s3Store } from '../../src/index.ts'
import { errorFrom } from '../tools/rows.ts'

describe('Stores of files', () => {
  let folder = ''
  let server: S3rver | undefined
  let client: S3Client

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'threadmill-stores-'))
    server = new S3rver({
      address: '127.0.0.1',
      port: 0,
      silent: true,
      directory: join(folder, 's3'),
      configureBuckets: [{ name: 'files', configs: [] }],
    })
    const { port } = await server.run()
    client = new S3Client({
      region: 'eu-central-1',
      endpoint: `http://127.0.0.1:${port}`,
      forcePathStyle: true,
      // What this server takes for an account of its own.
      credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      maxAttempts: 1,
    })
  })
  after(async () => {
    client.destroy()
    await server?.close()
    await rm(folder, { recursive: true, force: true })
  })

  const stores: readonly { readonly name: string; readonly store: () => BlobStore; keys(): Promise<string[]> }[] = [
    {
      name: 'diskStore',
      store: () => diskStore(join(folder, 'disk')),
      keys: async () =>
        (await readdir(join(folder, 'disk'), { recursive: true, withFileTypes: true }))
          .filter((entry) => entry.isFile())
          .map(({ name }) => name),
    },
    {
      name: 's3Store',
      store: () => s3Store({ client, bucket: 'files', prefix: 'chats/' }),
      keys: async () =>
        ((await client.send(new ListObjectsV2Command({ Bucket: 'files' }))).Contents ?? []).map(({ Key }) => Key ?? ''),
    },
  ]

  for (const { name, store: open, keys } of stores) {
    describe(name, () => {
      const bytes = new Uint8Array(70_000).map((_, at) => at % 251)
      const digest = createHash('sha256').update(bytes).digest('hex')

      it('keeps bytes under their digest, whole and once, until they are deleted (B88, E60)', async () => {
        const store = open()
        expect([await store.has(digest), await store.get(digest)]).to.deep.equal([false, null])
        await store.put(digest, bytes)
        await Promise.all([store.put(digest, bytes), store.put(digest, bytes)])
        expect(await store.has(digest)).to.equal(true)
        // Another object, as another process would have it.
        expect(Buffer.from((await open().get(digest)) ?? []).equals(bytes)).to.equal(true)
        expect(await keys()).to.deep.equal([name === 's3Store' ? `chats/${digest}` : digest])
        await store.delete(digest)
        await store.delete(digest)
        expect([await store.has(digest), await store.get(digest)]).to.deep.equal([false, null])
        expect(await keys()).to.deep.equal([])
      })

      it('keeps a file that is empty', async () => {
        await open().put(digest, new Uint8Array())
        expect((await open().get(digest))?.byteLength).to.equal(0)
        await open().delete(digest)
      })
    })
  }

  describe('s3Store', () => {
    it('lets out what S3 says of anything but a missing object (E60)', async () => {
      const store = s3Store({ client, bucket: 'elsewhere' })
      for (const act of [() => store.put('a', new Uint8Array([1])), () => store.get('a')]) {
        expect(await errorFrom(act)).to.have.property('name', 'NoSuchBucket')
      }
    })

    it('refuses to be made of what can not send, or without a bucket', async () => {
      for (const options of [
        { client: {}, bucket: 'files' },
        { client, bucket: '' },
        { client },
        { bucket: 'files' },
      ]) {
        expect(await errorFrom(async () => s3Store(options as never))).to.be.instanceOf(ConfigurationError)
      }
    })
  })
})
