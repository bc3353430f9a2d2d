import * as z from 'zod'
import { defineTool, ToolError } from '../../index.ts'

/** Cities that share the zone of another one, which the system's list goes by. */
const moreCities: Readonly<Record<string, readonly string[]>> = {
  'America/Los_Angeles': ['San Francisco', 'Seattle', 'San Diego', 'Las Vegas', 'Portland'],
  'America/New_York': ['Washington', 'Boston', 'Philadelphia', 'Miami', 'Atlanta', 'NYC'],
  'America/Chicago': ['Houston', 'Dallas', 'Austin', 'Minneapolis'],
  'America/Toronto': ['Montreal', 'Ottawa', 'Quebec'],
  'America/Sao_Paulo': ['Rio de Janeiro', 'Brasilia'],
  'Asia/Shanghai': ['Beijing', 'Shenzhen', 'Guangzhou'],
  'Asia/Calcutta': ['Kolkata', 'Mumbai', 'Delhi', 'New Delhi', 'Bangalore', 'Bengaluru', 'Chennai', 'Hyderabad'],
  'Asia/Tokyo': ['Osaka', 'Kyoto', 'Yokohama', 'Sapporo'],
  'Asia/Saigon': ['Ho Chi Minh City', 'Hanoi'],
  'Asia/Rangoon': ['Yangon'],
  'Asia/Dubai': ['Abu Dhabi'],
  'Asia/Jerusalem': ['Tel Aviv'],
  'Africa/Johannesburg': ['Cape Town', 'Durban', 'Pretoria'],
  'Australia/Sydney': ['Canberra'],
  'Pacific/Auckland': ['Wellington'],
  'Europe/Berlin': ['Munich', 'Hamburg', 'Frankfurt', 'Cologne', 'Stuttgart', 'Leipzig'],
  'Europe/Istanbul': ['Ankara'],
  'Europe/Kiev': ['Kyiv'],
  'Europe/London': ['Edinburgh', 'Manchester', 'Birmingham', 'Glasgow', 'Cardiff', 'Belfast'],
  'Europe/Madrid': ['Barcelona', 'Seville', 'Valencia'],
  'Europe/Moscow': ['Saint Petersburg', 'St. Petersburg'],
  'Europe/Paris': ['Lyon', 'Marseille', 'Nice', 'Toulouse'],
  'Europe/Rome': ['Milan', 'Naples', 'Turin', 'Florence', 'Venice'],
  'Europe/Zurich': ['Geneva', 'Basel', 'Bern'],
}

/** One spelling for all: no accents, no case, no difference between a blank and what zone names have in its place. */
const plain = (name: string): string =>
  name
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[\s_.-]+/g, ' ')
    .trim()

const zones: ReadonlyMap<string, string> = new Map([
  ['utc', 'UTC'],
  ['gmt', 'UTC'],
  ...Object.entries(moreCities).flatMap(([zone, cities]) => cities.map((city) => [plain(city), zone] as const)),
  ...Intl.supportedValuesOf('timeZone').flatMap((zone) => [
    [plain(zone), zone] as const,
    [plain(zone.slice(zone.lastIndexOf('/') + 1)), zone] as const,
  ]),
])

/** The IANA time zone of a city, or of a zone's own name; null for a city that no zone is named after. */
export function zoneOf(city: string): string | null {
  // "Portland, Oregon": what follows a comma only says which one.
  return zones.get(plain(city)) ?? zones.get(plain(city.split(',')[0] ?? '')) ?? null
}

/** Tells the time in a city. */
export const clock = defineTool({
  name: 'clock',
  description: 'Tells the current date and time in a city. Takes names of large cities and IANA time zones.',
  parameters: z.object({ city: z.string().min(1).max(100).describe('for example Tokyo, or Europe/Paris') }),
  execute({ city }) {
    const timeZone = zoneOf(city)
    if (timeZone === null) {
      throw new ToolError(`I know no time zone for ${JSON.stringify(city)}: try the largest city near it.`)
    }
    const time = new Intl.DateTimeFormat('en-GB', {
      timeZone,
      weekday: 'long',
      day: 'numeric',
      month: 'long',
      year: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
    }).format(new Date())
    return `${time} (${timeZone})`
  },
})
