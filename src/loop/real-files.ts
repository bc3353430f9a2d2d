import { type FileDependencies, keepBytes, purgeFiles, storeFiles } from '../attachments/keeping.ts'
import { type LoadedAttachment, loadAttachments } from '../attachments/source.ts'
import type { FilesPort } from './ports.ts'

/** The files of a real store. */
export function realFiles(deps: FileDependencies): FilesPort {
  const purge = (files: readonly LoadedAttachment[]) =>
    purgeFiles(
      deps,
      files.map(({ value }) => value),
    )
  return {
    async store(sources) {
      const loaded = await loadAttachments(sources, deps.files)
      if (loaded.length === 0) return loaded
      try {
        await storeFiles(deps, loaded)
        return loaded
      } catch (error) {
        await purge(loaded)
        throw error
      }
    },
    keep: (files) => keepBytes(deps, files),
    purge,
  }
}
