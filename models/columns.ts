import type { Dialect } from './dialect.ts'
import type {
  ChatRow,
  DecisionRow,
  Json,
  MessageRow,
  ModelRow,
  QueuedMessageRow,
  ReceiptRow,
  ToolCallRow,
  UsageRow,
} from './rows.ts'
import { storableJson } from './storable.ts'

/** How a column travels between a row and a statement. */
export type Kind = 'text' | 'int' | 'bool' | 'time' | 'stamp' | 'decimal' | JsonKind
/** Any JSON, or JSON of one shape. */
export type JsonKind = 'json' | 'object' | 'settings' | 'list' | 'files' | 'failure' | 'transfer' | 'pause'
type Columns<Row> = { readonly [Key in keyof Row]-?: readonly [column: string, kind: Kind] }

export const chatColumns: Columns<ChatRow> = {
  id: ['id', 'text'],
  agent: ['agent', 'text'],
  model: ['model', 'text'],
  provider: ['provider', 'text'],
  modelRowId: ['model_row_id', 'text'],
  owner: ['owner', 'text'],
  forkedFrom: ['forked_from', 'text'],
  forkedPosition: ['forked_position', 'int'],
  parentId: ['parent_id', 'text'],
  parentCallId: ['parent_call_id', 'text'],
  rootId: ['root_id', 'text'],
  depth: ['depth', 'int'],
  transferTo: ['transfer_to', 'transfer'],
  inputs: ['inputs', 'object'],
  settings: ['settings', 'settings'],
  nextPosition: ['next_position', 'int'],
  nextQueuePosition: ['next_queue_position', 'int'],
  claimedBy: ['claimed_by', 'text'],
  claimedUntil: ['claimed_until', 'time'],
  claimToken: ['claim_token', 'int'],
  wantedAt: ['wanted_at', 'time'],
  wantedSeq: ['wanted_seq', 'int'],
  wantedQueue: ['wanted_queue', 'text'],
  attempts: ['attempts', 'int'],
  deaths: ['deaths', 'int'],
  lastDeath: ['last_death', 'text'],
  putOff: ['put_off', 'int'],
  rounds: ['rounds', 'int'],
  failure: ['failure', 'failure'],
  turn: ['turn', 'int'],
  cancelTurn: ['cancel_turn', 'int'],
  cancelSeq: ['cancel_seq', 'int'],
  cancelledTurn: ['cancelled_turn', 'int'],
  endedTurn: ['ended_turn', 'int'],
  compactAt: ['compact_at', 'time'],
  compactSeq: ['compact_seq', 'int'],
  compactAttempts: ['compact_attempts', 'int'],
  compactions: ['compactions', 'int'],
  parked: ['parked', 'bool'],
  createdAt: ['created_at', 'stamp'],
  updatedAt: ['updated_at', 'stamp'],
}

export const modelColumns: Columns<ModelRow> = {
  id: ['id', 'text'],
  provider: ['provider', 'text'],
  modelId: ['model_id', 'text'],
  name: ['name', 'text'],
  family: ['family', 'text'],
  contextWindow: ['context_window', 'int'],
  maxOutputTokens: ['max_output_tokens', 'int'],
  modalities: ['modalities', 'json'],
  capabilities: ['capabilities', 'json'],
  pricing: ['pricing', 'json'],
  metadata: ['metadata', 'json'],
  unlistedAt: ['unlisted_at', 'time'],
  createdAt: ['created_at', 'stamp'],
  updatedAt: ['updated_at', 'stamp'],
}

export const messageColumns: Columns<MessageRow> = {
  id: ['id', 'text'],
  chatId: ['chat_id', 'text'],
  position: ['position', 'int'],
  role: ['role', 'text'],
  content: ['content', 'text'],
  thinkingText: ['thinking_text', 'text'],
  thinkingSignature: ['thinking_signature', 'text'],
  rawReasoning: ['raw_reasoning', 'json'],
  citations: ['citations', 'list'],
  finishReason: ['finish_reason', 'text'],
  outcome: ['outcome', 'text'],
  encoding: ['encoding', 'text'],
  attachments: ['attachments', 'files'],
  cacheBoundary: ['cache_until_here', 'json'],
  summaryThrough: ['summary_through', 'int'],
  createdAt: ['created_at', 'stamp'],
  updatedAt: ['updated_at', 'stamp'],
}

export const toolCallColumns: Columns<ToolCallRow> = {
  id: ['id', 'text'],
  chatId: ['chat_id', 'text'],
  messageId: ['message_id', 'text'],
  resultId: ['result_id', 'text'],
  position: ['position', 'int'],
  toolCallId: ['tool_call_id', 'text'],
  providerCallId: ['provider_call_id', 'text'],
  name: ['name', 'text'],
  namespace: ['namespace', 'text'],
  arguments: ['arguments', 'json'],
  malformedArguments: ['malformed_arguments', 'text'],
  thoughtSignature: ['thought_signature', 'text'],
  approval: ['approval', 'text'],
  remote: ['remote', 'bool'],
  offered: ['offered', 'bool'],
  claimedBy: ['claimed_by', 'text'],
  claimedUntil: ['claimed_until', 'time'],
  startedAt: ['started_at', 'time'],
  mcpState: ['mcp_state', 'pause'],
  editedArguments: ['edited_arguments', 'object'],
  decidedBy: ['decided_by', 'text'],
  decisionReason: ['decision_reason', 'text'],
  askedAt: ['asked_at', 'time'],
  expiresAt: ['expires_at', 'time'],
  createdAt: ['created_at', 'stamp'],
  updatedAt: ['updated_at', 'stamp'],
}

export const queuedMessageColumns: Columns<QueuedMessageRow> = {
  id: ['id', 'text'],
  chatId: ['chat_id', 'text'],
  position: ['position', 'int'],
  content: ['content', 'text'],
  attachments: ['attachments', 'files'],
  steer: ['steer', 'bool'],
  owner: ['owner', 'json'],
  ownerKey: ['owner_key', 'text'],
  createdAt: ['created_at', 'stamp'],
}

export const receiptColumns: Columns<ReceiptRow> = {
  id: ['id', 'text'],
  chatId: ['chat_id', 'text'],
  status: ['status', 'text'],
  messageId: ['message_id', 'text'],
  queuedAt: ['queued_at', 'stamp'],
  settledAt: ['settled_at', 'stamp'],
}

export const decisionColumns: Columns<DecisionRow> = {
  id: ['id', 'text'],
  chatId: ['chat_id', 'text'],
  toolCallId: ['tool_call_id', 'text'],
  action: ['action', 'text'],
  decidedBy: ['decided_by', 'text'],
  reason: ['reason', 'text'],
  requestKey: ['request_key', 'text'],
  value: ['value', 'json'],
  createdAt: ['created_at', 'stamp'],
}

export const usageColumns: Columns<UsageRow> = {
  id: ['id', 'text'],
  chatId: ['chat_id', 'text'],
  owner: ['owner', 'text'],
  messageId: ['message_id', 'text'],
  answerId: ['answer_id', 'text'],
  operation: ['operation', 'text'],
  provider: ['provider', 'text'],
  model: ['model', 'text'],
  status: ['status', 'text'],
  claimToken: ['claim_token', 'int'],
  inputTokens: ['input_tokens', 'int'],
  outputTokens: ['output_tokens', 'int'],
  cacheReadTokens: ['cache_read_tokens', 'int'],
  cacheWriteTokens: ['cache_write_tokens', 'int'],
  thinkingTokens: ['thinking_tokens', 'int'],
  inputCost: ['input_cost', 'decimal'],
  outputCost: ['output_cost', 'decimal'],
  cacheReadCost: ['cache_read_cost', 'decimal'],
  cacheWriteCost: ['cache_write_cost', 'decimal'],
  totalCost: ['total_cost', 'decimal'],
  errorCode: ['error_code', 'text'],
  createdAt: ['created_at', 'stamp'],
  updatedAt: ['updated_at', 'stamp'],
}

export type { Columns }

/** The columns of a table as a SELECT list, each named by its key; `prefix` keeps two tables of one row apart. */
export function selectList<Row>(columns: Columns<Row>, alias: string, prefix = ''): string {
  return entries(columns)
    .map(([key, [column]]) => `${alias}.${column} AS ${prefix}${key}`)
    .join(', ')
}

/**
 * A value as it is bound to a statement.
 * @param name what errors call it.
 * @throws {ArgumentError} for JSON that not every database stores.
 */
export function bindValue(kind: Kind, value: unknown, dialect: Dialect, name: string): string | number | null {
  if (value === null || value === undefined) return null
  switch (kind) {
    case 'time':
    case 'stamp':
      return dialect.time(value as Date)
    case 'bool':
      return value ? 1 : 0
    case 'int':
      return value as number
    case 'decimal':
    case 'text':
      return value as string
    default:
      kind satisfies JsonKind
      return storableJson(name, value as Json)
  }
}

export function entries<Row>(columns: Columns<Row>): [string & keyof Row, readonly [string, Kind]][] {
  return Object.entries(columns) as [string & keyof Row, readonly [string, Kind]][]
}
