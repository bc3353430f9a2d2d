import { expect } from 'chai'
import { isRefusedStatement } from '../../config/refused-statement.ts'

/** As Sequelize wraps what a driver says. */
const wrapped = (parent: object) =>
  Object.assign(new Error('failed'), { parent: Object.assign(new Error('why'), parent) })

describe('A statement that failed', () => {
  const refused = {
    'by a trigger of MariaDB': { errno: 1644, code: 'ER_SIGNAL_EXCEPTION', sqlState: '45000' },
    'for a missing row of another table': { errno: 1452, code: 'ER_NO_REFERENCED_ROW_2', sqlState: '23000' },
    'for a text that is too long': { errno: 1406, code: 'ER_DATA_TOO_LONG', sqlState: '22001' },
    'for a column that is not there': { errno: 1054, code: 'ER_BAD_FIELD_ERROR', sqlState: '42S22' },
    'for a column without a default': { errno: 1364, code: 'ER_NO_DEFAULT_FOR_FIELD', sqlState: 'HY000' },
    'for a right that is missing': { errno: 1142, code: 'ER_TABLEACCESS_DENIED_ERROR', sqlState: '42000' },
    'by a trigger of SQLite': { code: 'SQLITE_CONSTRAINT_TRIGGER' },
    'for a constraint of SQLite': { code: 'SQLITE_CONSTRAINT' },
    'for a column that is not there in SQLite': { code: 'SQLITE_ERROR' },
  }
  for (const [why, parent] of Object.entries(refused)) {
    it(`was refused ${why} (S83)`, () => expect(isRefusedStatement(wrapped(parent))).to.equal(true))
  }

  const others = {
    'a deadlock': { errno: 1213, code: 'ER_LOCK_DEADLOCK', sqlState: '40001' },
    'a lock wait that was too long': { errno: 1205, code: 'ER_LOCK_WAIT_TIMEOUT', sqlState: 'HY000' },
    'a busy SQLite': { code: 'SQLITE_BUSY' },
    'a lost connection': { code: 'PROTOCOL_CONNECTION_LOST' },
    'a connection that was refused': { errno: -111, code: 'ECONNREFUSED' },
    'a connection that was killed': { errno: 1927, sqlState: '70100' },
    'a server that shuts down': { errno: 1053, code: 'ER_SERVER_SHUTDOWN', sqlState: '08S01' },
    'an account that has asked too much': { errno: 1226, code: 'ER_USER_LIMIT_REACHED', sqlState: '42000' },
    'a database that only reads': { errno: 1290, code: 'ER_OPTION_PREVENTS_STATEMENT', sqlState: 'HY000' },
    'a full table': { errno: 1114, code: 'ER_RECORD_FILE_FULL', sqlState: 'HY000' },
    'a SQLite that only reads': { code: 'SQLITE_READONLY' },
    'a full disk': { code: 'SQLITE_FULL' },
    'a closed SQLite': { code: 'SQLITE_MISUSE' },
  }
  for (const [why, parent] of Object.entries(others)) {
    it(`was not refused where the cause is ${why}`, () => expect(isRefusedStatement(wrapped(parent))).to.equal(false))
  }

  it('was not refused where the error is none of a database', () => {
    expect([new TypeError('a bug'), 'a text', null, undefined].map(isRefusedStatement)).to.deep.equal(
      Array(4).fill(false),
    )
  })
})
