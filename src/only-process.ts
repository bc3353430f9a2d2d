import { startProgram } from './cli/start.ts'

// The command line, for a process that runs one chat alone: beside what starts it, from sources or compiled.

startProgram()
