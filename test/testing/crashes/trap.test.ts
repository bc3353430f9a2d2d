import { expect } from 'chai'
import { loading } from '../../../config/node-arguments.ts'
import { statementOf, Trap } from '../../../src/testing/crashes/trap.ts'
import { listWrites, pointsOf } from '../../../src/testing/crashes/writes.ts'

const recorded = (statement: string, occurrence = 1, stores = true) => ({ statement, occurrence, stores })

/** Sends statements through a trap; returns what was sent until the process died. */
async function send(trap: Trap, sent: string[], statements: readonly (readonly [string, object | null])[]) {
  try {
    for (const [sql, transaction] of statements) await trap.pass(sql, transaction, async () => sent.push(sql))
  } catch (error) {
    if (error !== 'dead') throw error
  }
  return sent
}

describe('The trap of a worker process', () => {
  const transaction = {}
  const turn = [
    ['UPDATE p_chats SET a = ?', null],
    ['BEGIN', transaction],
    ['UPDATE p_chats SET a = ?', transaction],
    ['SELECT 1', transaction],
    ['COMMIT;', transaction],
  ] as const

  it('counts writes by their text, and names a commit by what it stores last (E110)', async () => {
    const trap = new Trap('p_', () => {})
    await send(trap, [], [...turn, ['BEGIN', {}], ['COMMIT', {}]])
    expect(trap.writes).to.eql([
      recorded('UPDATE chats SET a = ?'),
      recorded('UPDATE chats SET a = ?', 2, false),
      recorded('COMMIT of UPDATE chats SET a = ?'),
    ])
    trap.set(null)
    expect(trap.writes).to.eql([])
  })

  for (const [moment, occurrence, statement, sent] of [
    ['before', 1, 'UPDATE chats SET a = ?', 0],
    ['after', 1, 'UPDATE chats SET a = ?', 1],
    ['before', 2, 'UPDATE chats SET a = ?', 2],
    ['before', 1, 'COMMIT of UPDATE chats SET a = ?', 4],
    ['after', 1, 'COMMIT of UPDATE chats SET a = ?', 5],
  ] as const) {
    it(`dies ${moment} the ${occurrence}. ${statement} (E110)`, async () => {
      const trap = new Trap('p_', () => {
        throw 'dead'
      })
      trap.set({ moment, occurrence, statement })
      expect(await send(trap, [], [...turn, ['SELECT 2', null]])).to.have.length(sent)
    })
  }

  it('does not take a statement that failed for one that is done (E110)', async () => {
    let deaths = 0
    const trap = new Trap('p_', () => deaths++)
    trap.set({ moment: 'after', occurrence: 1, statement: 'DELETE FROM a' })
    const failed = await trap.pass('DELETE FROM a', null, async () => Promise.reject('busy')).catch((error) => error)
    expect([failed, deaths]).to.eql(['busy', 0])
  })

  it('leaves values, quotes and the prefix of tables out of a statement (E110)', () => {
    expect(statementOf("UPDATE `p_chats` SET  a = $chatId, b = 'it''s',\n c = p_other.d;", 'p_')).to.equal(
      'UPDATE chats SET a = ?, b = ?, c = other.d',
    )
  })
})

describe('The places to die at', () => {
  const [take, sweep, insert, again] = [
    recorded('take'),
    recorded('sweep'),
    recorded('insert', 1, false),
    recorded('take', 2),
  ]

  it('are writes that two runs made and an idle worker does not (E110)', () => {
    const listed = listWrites([take, sweep, insert], [sweep, take, insert, again], [sweep])
    expect(listed.map(({ number, statement }) => [number, statement])).to.eql([
      [1, 'take'],
      [2, 'insert'],
    ])
  })

  it('are before each write, and after those that store something (E110)', () => {
    const points = pointsOf(listWrites([take, insert], [take, insert], []))
    expect(points.map(({ point }) => [point.number, point.moment])).to.eql([
      [1, 'before'],
      [1, 'after'],
      [2, 'before'],
    ])
  })
})

describe('The arguments of worker processes', () => {
  it('are those that say how modules are loaded, not those of a debugger or a test runner (E116)', () => {
    const given = [
      '--import',
      'tsx',
      '--conditions=own',
      '-C',
      'more',
      '--inspect-brk=0',
      '--test',
      '--experimental-strip-types',
    ]
    expect(loading(given)).to.eql(['--import', 'tsx', '--conditions=own', '-C', 'more', '--experimental-strip-types'])
  })
})
