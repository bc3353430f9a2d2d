import { openDatabase } from '../../../config/database.ts'
import { migrate } from '../../../models/migrator.ts'

// Migrates once, and says what it applied; with a number it is killed in the middle, before that change of the schema.

const [databaseUrl = '', dieAt] = process.argv.slice(2)
let changes = 0
const sequelize = openDatabase(
  { databaseUrl, dataDir: '.', databasePool: 2 },
  {
    onStatement(sql) {
      if (/^(CREATE|ALTER)/.test(sql) && ++changes === Number(dieAt)) process.kill(process.pid, 'SIGKILL')
    },
  },
)
migrate(sequelize, 'threadmill_')
  .then((names) => process.stdout.write(`APPLIED ${JSON.stringify(names)}\n`))
  .finally(() => sequelize.close())
