import { DataTypes } from 'sequelize'
import { exactCollation } from './collation.ts'
import type { Migration } from './migration.ts'

/** Chats, their messages and tool calls, the queue of user messages, and the ledger of attempts at models. */
export const conversations: Migration = {
  name: '0001-conversations',
  async up({ queryInterface, tables, transaction }) {
    const options = { charset: 'utf8mb4', collate: await exactCollation(queryInterface, transaction), transaction }
    const id = { type: DataTypes.STRING(36), allowNull: false, primaryKey: true }
    const count = { type: DataTypes.INTEGER, allowNull: false, defaultValue: 0 }
    const time = { type: DataTypes.DATE(3), allowNull: false }
    const word = { type: DataTypes.STRING(255), allowNull: true }
    // SQLite's text has no length, and says so loudly when it is given one.
    const isSqlite = queryInterface.sequelize.getDialect() === 'sqlite'
    const longText = { type: isSqlite ? DataTypes.TEXT : DataTypes.TEXT('long'), allowNull: true }
    const json = { type: DataTypes.JSON, allowNull: true }
    const tokens = { type: DataTypes.INTEGER, allowNull: true }
    const cost = { type: DataTypes.DECIMAL(16, 10), allowNull: true }
    const reference = (model: string, onDelete: 'CASCADE' | 'SET NULL') => ({
      type: DataTypes.STRING(36),
      allowNull: onDelete === 'SET NULL',
      references: { model, key: 'id' },
      onDelete,
      onUpdate: 'NO ACTION',
    })

    await queryInterface.createTable(
      tables.chats,
      {
        id,
        agent: word,
        model: word,
        provider: word,
        owner: word,
        settings: { type: DataTypes.JSON, allowNull: false },
        next_position: count,
        next_queue_position: count,
        claimed_by: { type: DataTypes.STRING(36), allowNull: true },
        claimed_until: { type: DataTypes.DATE(3), allowNull: true },
        claim_token: count,
        wanted_at: { type: DataTypes.DATE(3), allowNull: true },
        wanted_seq: count,
        wanted_queue: { type: DataTypes.STRING(16), allowNull: true },
        attempts: count,
        put_off: count,
        rounds: count,
        failure: json,
        turn: count,
        cancel_turn: { type: DataTypes.INTEGER, allowNull: true },
        cancel_seq: { type: DataTypes.INTEGER, allowNull: true },
        cancelled_turn: { type: DataTypes.INTEGER, allowNull: true },
        parked: { type: DataTypes.BOOLEAN, allowNull: false, defaultValue: false },
        created_at: time,
        updated_at: time,
      },
      options,
    )
    await queryInterface.addIndex(tables.chats, ['wanted_at'], { name: `${tables.chats}_wanted`, transaction })
    await queryInterface.addIndex(tables.chats, ['owner'], { name: `${tables.chats}_owner`, transaction })

    await queryInterface.createTable(
      tables.messages,
      {
        id,
        chat_id: reference(tables.chats, 'CASCADE'),
        position: { type: DataTypes.INTEGER, allowNull: false },
        role: { type: DataTypes.STRING(16), allowNull: false },
        content: longText,
        thinking_text: longText,
        thinking_signature: longText,
        raw_reasoning: json,
        citations: json,
        finish_reason: word,
        outcome: { type: DataTypes.STRING(16), allowNull: true },
        created_at: time,
        updated_at: time,
      },
      options,
    )
    await queryInterface.addIndex(tables.messages, ['chat_id', 'position'], {
      name: `${tables.messages}_position`,
      unique: true,
      transaction,
    })

    await queryInterface.createTable(
      tables.toolCalls,
      {
        id,
        chat_id: reference(tables.chats, 'CASCADE'),
        message_id: reference(tables.messages, 'CASCADE'),
        result_id: reference(tables.messages, 'SET NULL'),
        position: { type: DataTypes.INTEGER, allowNull: false },
        tool_call_id: { type: DataTypes.STRING(255), allowNull: false },
        provider_call_id: longText,
        name: { type: DataTypes.STRING(255), allowNull: false },
        namespace: word,
        arguments: json,
        malformed_arguments: longText,
        thought_signature: longText,
        approval: { type: DataTypes.STRING(16), allowNull: true },
        remote: { type: DataTypes.BOOLEAN, allowNull: false, defaultValue: false },
        offered: { type: DataTypes.BOOLEAN, allowNull: false, defaultValue: true },
        claimed_by: { type: DataTypes.STRING(36), allowNull: true },
        claimed_until: { type: DataTypes.DATE(3), allowNull: true },
        started_at: { type: DataTypes.DATE(3), allowNull: true },
        mcp_state: json,
        created_at: time,
        updated_at: time,
      },
      options,
    )
    await queryInterface.addIndex(tables.toolCalls, ['tool_call_id'], {
      name: `${tables.toolCalls}_tool_call_id`,
      unique: true,
      transaction,
    })
    await queryInterface.addIndex(tables.toolCalls, ['message_id', 'position'], {
      name: `${tables.toolCalls}_position`,
      unique: true,
      transaction,
    })
    await queryInterface.addIndex(tables.toolCalls, ['result_id'], {
      name: `${tables.toolCalls}_result`,
      unique: true,
      transaction,
    })
    await queryInterface.addIndex(tables.toolCalls, ['chat_id', 'approval'], {
      name: `${tables.toolCalls}_approval`,
      transaction,
    })
    await queryInterface.addIndex(tables.toolCalls, ['name'], { name: `${tables.toolCalls}_name`, transaction })

    await queryInterface.createTable(
      tables.queuedMessages,
      {
        id,
        chat_id: reference(tables.chats, 'CASCADE'),
        position: { type: DataTypes.INTEGER, allowNull: false },
        content: longText,
        steer: { type: DataTypes.BOOLEAN, allowNull: false },
        owner: json,
        created_at: time,
      },
      options,
    )
    await queryInterface.addIndex(tables.queuedMessages, ['chat_id', 'position'], {
      name: `${tables.queuedMessages}_position`,
      unique: true,
      transaction,
    })

    await queryInterface.createTable(
      tables.usages,
      {
        id,
        chat_id: reference(tables.chats, 'CASCADE'),
        message_id: reference(tables.messages, 'SET NULL'),
        answer_id: { type: DataTypes.STRING(36), allowNull: true },
        operation: { type: DataTypes.STRING(32), allowNull: false },
        provider: { type: DataTypes.STRING(255), allowNull: false },
        model: { type: DataTypes.STRING(255), allowNull: false },
        status: { type: DataTypes.STRING(16), allowNull: false },
        claim_token: count,
        input_tokens: tokens,
        output_tokens: tokens,
        cache_read_tokens: tokens,
        cache_write_tokens: tokens,
        thinking_tokens: tokens,
        input_cost: cost,
        output_cost: cost,
        cache_read_cost: cost,
        cache_write_cost: cost,
        total_cost: cost,
        error_code: word,
        created_at: time,
        updated_at: time,
      },
      options,
    )
    await queryInterface.addIndex(tables.usages, ['chat_id', 'status'], {
      name: `${tables.usages}_status`,
      transaction,
    })
    await queryInterface.addIndex(tables.usages, ['chat_id', 'id'], { name: `${tables.usages}_latest`, transaction })
    await queryInterface.addIndex(tables.usages, ['message_id'], { name: `${tables.usages}_message`, transaction })
  },
}
