export { type Tables, tableNames } from '../models/database.ts'
export { type Migration, type MigrationContext, migrations } from '../models/migrations/index.ts'
