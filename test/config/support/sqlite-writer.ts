import { QueryTypes } from 'sequelize'
import { openDatabase } from '../../../config/database.ts'

const [databaseUrl = '', writes = '0', name = ''] = process.argv.slice(2)
const sequelize = openDatabase({ databaseUrl, dataDir: '', databasePool: 1 })
const errors: string[] = []

for (let written = 0; written < Number(writes); written++) {
  try {
    await sequelize.transaction(async (transaction) => {
      const [row] = await sequelize.query<{ n: number }>('SELECT n FROM counter', {
        type: QueryTypes.SELECT,
        transaction,
      })
      await sequelize.query('INSERT INTO entries (name) VALUES ($name)', { bind: { name }, transaction })
      await sequelize.query('UPDATE counter SET n = $n', { bind: { n: (row?.n ?? 0) + 1 }, transaction })
    })
    await sequelize.query('INSERT INTO entries (name) VALUES ($name)', { bind: { name: `${name} alone` } })
  } catch (error) {
    errors.push(String(error))
  }
}
await sequelize.close()
process.stdout.write(`${JSON.stringify({ errors })}\n`)
