import { defineAgent } from 'threadmill'

export const greeter = defineAgent({ name: 'greeter', instructions: 'You greet people, politely.' })
