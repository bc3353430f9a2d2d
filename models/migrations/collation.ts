import { type QueryInterface, QueryTypes, type Transaction } from 'sequelize'

/** Compare byte for byte without ignoring spaces at the end: MariaDB's, and that of MySQL 8. */
const exact = ['utf8mb4_nopad_bin', 'utf8mb4_0900_bin']

/** The collation under which ids differ by every character, trailing spaces included. SQLite compares so by itself. */
export async function exactCollation(queryInterface: QueryInterface, transaction: Transaction): Promise<string> {
  const { sequelize } = queryInterface
  if (sequelize.getDialect() === 'sqlite') return 'binary'
  const known = await sequelize.query<{ name: string }>(
    'SELECT COLLATION_NAME AS name FROM information_schema.COLLATIONS WHERE COLLATION_NAME IN ($first, $second)',
    { bind: { first: exact[0], second: exact[1] }, type: QueryTypes.SELECT, transaction },
  )
  return known[0]?.name ?? 'utf8mb4_bin'
}
