import type { Migration } from './migration.ts'

/** An index by which chats that were put off are found: each worker process looks for them every second or so. */
export const putOffs: Migration = {
  name: '0014-put-off',
  async up({ queryInterface, tables, transaction }) {
    const { chats } = tables
    await queryInterface.addIndex(chats, ['put_off'], { name: `${chats}_put_off`, transaction })
  },
}
