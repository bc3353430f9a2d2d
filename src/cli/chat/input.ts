/** What a line asks for. */
export type Input =
  | { readonly kind: 'text' | 'later' | 'steer' | 'answer'; readonly text: string }
  | { readonly kind: 'unqueue'; readonly which: string }
  | { readonly kind: 'decline'; readonly which: string }
  | { readonly [Name in Command]: { readonly kind: Name } }[Command]
  | { readonly kind: 'wrong'; readonly problem: string }

type Command = 'nothing' | 'queue' | 'status' | 'retry' | 'compact' | 'cancel' | 'help' | 'quit'

/** Every command, as `/help` explains it. */
export const commandsHelp = [
  '/answer JSON   answer what a tool asks, with an object of its fields, or a text where that is all it asks',
  '/answer KEY …  answer that question, where there are several; without KEY the oldest',
  '/decline KEY   decline to answer; without KEY the oldest question',
  '/later TEXT    queue a message for the next turn',
  '/steer TEXT    queue a message that joins the running turn; in a terminal so does any line typed during an answer',
  '/queue         list what is queued',
  '/unqueue N     take message N of that list out; without N the last one',
  '/cancel        stop the turn, as Ctrl-C does',
  '/retry         run the chat again, after a failure or a stop',
  '/compact       have the history summarised by the workers of that queue',
  '/status        say why the chat moves or does not',
  '/quit          leave; a turn that runs goes on, and so it does after Ctrl-D',
  '//TEXT         send TEXT with one slash before it',
]

/** Reads a line. What begins with one slash is a command. */
export function readInput(line: string): Input {
  const text = line.trim()
  if (text === '') return { kind: 'nothing' }
  if (text.startsWith('//')) return { kind: 'text', text: text.slice(1) }
  if (!text.startsWith('/')) return { kind: 'text', text }
  const [, word = '', rest = ''] = /^\/(\S*)\s*([\s\S]*)$/.exec(text) ?? []
  switch (word) {
    case 'later':
    case 'steer':
    case 'answer':
      return rest === '' ? { kind: 'wrong', problem: `/${word} needs a text` } : { kind: word, text: rest }
    case 'unqueue':
      return { kind: 'unqueue', which: rest }
    case 'decline':
      return { kind: 'decline', which: rest }
    case 'queue':
    case 'status':
    case 'retry':
    case 'compact':
    case 'cancel':
    case 'help':
    case 'quit':
      return rest === '' ? { kind: word } : { kind: 'wrong', problem: `/${word} takes nothing behind it` }
    default:
      return { kind: 'wrong', problem: `there is no command /${word}: /help lists them` }
  }
}

export type Decision = 'yes' | 'no' | 'always'

/** What somebody says about a call; null when it is none of the three. */
export function readDecision(text: string): Decision | null {
  const word = text.trim().toLowerCase()
  return (['yes', 'no', 'always'] as const).find((one) => word !== '' && one.startsWith(word)) ?? null
}
