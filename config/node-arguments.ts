import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

// What node is given for a process of ours, so that it finds and loads modules as its parent does.

/** For a file of our sources, what loads TypeScript; for a compiled one nothing. */
export function loaderFor(file: string): string[] {
  return file.endsWith('.ts') ? ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href] : []
}

const loadingOptions =
  /^(?:--(?:import|require|loader|experimental-loader|conditions|experimental-[\w-]*types?[\w-]*)|-r|-C)$/

/** Of the arguments of a node process, those that say how modules are found and loaded; those of a debugger or a test runner are not. */
export function loading(execArgv: readonly string[]): string[] {
  return execArgv.flatMap((argument, at) => {
    const [name = ''] = argument.split('=', 1)
    if (!loadingOptions.test(name)) return []
    const value = execArgv[at + 1]
    const takesNext = !argument.includes('=') && !/types?/.test(name) && value !== undefined
    return takesNext ? [argument, value] : [argument]
  })
}
