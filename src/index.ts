export type { Logger } from '../config/logger.ts'
export type { RedisClient } from '../config/redis-clients.ts'
export type { ChatRecord } from '../models/chat.ts'
export type { DecisionRecord } from '../models/decision.ts'
// Whole, so that an application can merge its declarations into it by this package's name.
export * from '../models/extension.ts'
export type { Extensions, ModelExtension, Models } from '../models/index.ts'
export type { MessageRecord, MessageValue } from '../models/message.ts'
export type { ModelRecord } from '../models/model.ts'
export type { ChatState } from '../models/overview.ts'
export { type Owner, ownerKey } from '../models/owner.ts'
export type { UsageTotal } from '../models/owner-totals.ts'
export type { WhileRunning } from '../models/posting.ts'
export type { QueuedMessageRecord } from '../models/queued-message.ts'
export type { ReceiptRecord } from '../models/receipt.ts'
export type {
  Approval,
  AttachmentValue,
  Bell,
  CacheBoundary,
  CachingSettings,
  ChatRow,
  ChatSettings,
  CompactionSettings,
  DecisionAction,
  DecisionRow,
  Failure,
  FallbackModel,
  FallbackSettings,
  Json,
  JsonObject,
  MessageRow,
  ModelRow,
  OutputSchema,
  QueuedMessageRow,
  ReceiptRow,
  ReceiptStatus,
  Role,
  ThinkingSettings,
  ToolCallRow,
  ToolEncoding,
  ToolOptions,
  ToolOutcome,
  TranscriptMessage,
  Transfer,
  UsageOperation,
  UsageRow,
  UsageStatus,
} from '../models/rows.ts'
export type { ToolCallRecord, ToolCallValue } from '../models/tool-call.ts'
export type { UsageRecord } from '../models/usage.ts'
export type { ChatCost, ChatTokens } from '../models/usage-totals.ts'
export type { InputField } from '../models/waiting.ts'
export { CompactJob } from '../workers/compact.ts'
export { CompleteJob } from '../workers/complete.ts'
export type { ChatOrId, EnqueueOptions, JobOutcome } from '../workers/job.ts'
export type { Pool, PoolState } from '../workers/pool.ts'
export { RunToolsJob } from '../workers/run-tools.ts'
export { Attachment } from './attachments/attachment.ts'
export type { AttachmentConverter, Converted } from './attachments/convert.ts'
export type { AttachmentsOptions } from './attachments/options.ts'
export { type S3Sender, type S3StoreOptions, s3Store } from './attachments/s3-store.ts'
export type { AttachmentData, AttachmentSource } from './attachments/source.ts'
export { type BlobStore, diskStore } from './attachments/store.ts'
export type { AddedMessageInput } from './chat/added-message.ts'
export { Approvals, type ApprovalsOptions, type ApprovalsPage, type PendingApproval } from './chat/approvals.ts'
export { Chat } from './chat/chat.ts'
export type { TransferToOptions } from './chat/chat-agent.ts'
export type {
  ApproveOptions,
  DecideOptions,
  DeciderOptions,
  ToolCallOrId,
  WakeOptions,
} from './chat/chat-decisions.ts'
export type { EditOptions, RegenerateOptions } from './chat/chat-edits.ts'
export type { InTransaction } from './chat/chat-handle.ts'
export type { ChatsListOptions, ChatsSearchOptions } from './chat/chat-lists.ts'
export type { ModelChoice, ModelOptions, Protocol } from './chat/chat-model.ts'
export type { AskLaterOptions, AskOptions } from './chat/chat-posts.ts'
export type { QueueOptions } from './chat/chat-requests.ts'
export type {
  FallbackArguments,
  InstructionOptions,
  PersistOptions,
  ToolArguments,
  ToolOptionsInput,
} from './chat/chat-settings.ts'
export type { Chats, ChatsPage, CreateOptions, ForkOptions, NewChat } from './chat/chats.ts'
export type { Diagnosis, WaitsFor } from './chat/diagnose.ts'
export type { Advice } from './chat/diagnosis-advice.ts'
export { LlmChat } from './chat/llm-chat.ts'
export type { Message } from './chat/message.ts'
export type { AddedValue } from './chat/message-inputs.ts'
export type { MessagesPage, PageOptions, SearchOptions } from './chat/message-pages.ts'
export type { TranscriptValue } from './chat/message-values.ts'
export type { InputRequest, PendingTaskOfChat } from './chat/pending.ts'
export type { PostOptions } from './chat/post-options.ts'
export type { Receipt } from './chat/receipt.ts'
export type { WithAttachments } from './chat/stored-files.ts'
export { defineAgent } from './chat/turn-ends.ts'
export { Usages, type UsageTotalOptions } from './chat/usages.ts'
export * from './errors.ts'
export type { ChatEvent, EventAttachment, EventToolCall, LiveEvent } from './events/event.ts'
export type { EventsOptions, History } from './events/options.ts'
export type { EventReader } from './events/reader.ts'
export type { ContextFor } from './loop/contexts.ts'
export type { Chunk, OnChunk } from './loop/run-context.ts'
export type { MessageRole, MessageStop, MessageType } from './messages/check.ts'
export {
  type MessageHash,
  type MessageOptions,
  MessageValue as MessageBase,
  TextMessage,
  ToolCallMessage,
  ToolResultMessage,
} from './messages/message.ts'
export { type ToolHash, ToolMessage, type ToolMessageOptions } from './messages/tool-message.ts'
export { UserMessage, type UserMessageOptions } from './messages/user-message.ts'
export type { ErrorFacts } from './observability/error-facts.ts'
export type { Observation } from './observability/observation.ts'
export type { ObservabilityOptions } from './observability/open.ts'
export type { Probe, ProbeOptions } from './observability/probe.ts'
export type { Observers } from './open.ts'
export { type OpenAiClientOptions, openAiClient } from './providers/openai.ts'
export type {
  Answer,
  AnswerProgress,
  AnswerToolCall,
  AttemptOptions,
  ModelAccess,
  ModelClient,
  ModelRequest,
  Prices,
  RequestAttachment,
  RequestMessage,
  RequestToolCall,
  TokenUsage,
  ToolSpec,
} from './providers/provider.ts'
export type { BoardHandler, BoardOptions } from './server/board.ts'
export type { IsolateOptions, WorkerCounts, WorkersOptions } from './start-workers.ts'
export { type ConnectOptions, Threadmill } from './threadmill.ts'
export type { Agent, Broadcast } from './tools/agent.ts'
export {
  type AgentQuestion,
  type AgentToolOptions,
  agentTool,
  type TransferToolOptions,
  transferTool,
} from './tools/agent-tools.ts'
export type { CompactionOptions, CompactOptions } from './tools/compaction-options.ts'
export type { AgentDefinition } from './tools/define-agent.ts'
export { defineTool, type ToolDefinition } from './tools/define-tool.ts'
export type { Fallback, FallbackOptions, ProviderErrorClass } from './tools/fallback.ts'
export type { HookDefinitions, HookLists, HookName, HookProgress, Hooks } from './tools/hooks.ts'
export type { InstructionContext, RenderInstructions } from './tools/instructions.ts'
export type { ModelContext } from './tools/model-context.ts'
export type { NamedSchema, SchemaInput } from './tools/output-schema.ts'
export type { ArgumentsOf, ToolParameters } from './tools/parameters.ts'
export type { AgentSettings, SettingName } from './tools/settings.ts'
export type { FallbacksInput, SettingsInput } from './tools/settings-input.ts'
export type {
  ApprovalResolver,
  CancelContext,
  Delegated,
  DelegateOptions,
  OnInterrupted,
  PendingTask,
  QuestionOptions,
  Reconciled,
  StopReason,
  Task,
  TaskOptions,
  Tool,
  ToolContext,
  ToolProgress,
  TransferOptions,
  Transferring,
  ValidatedArguments,
} from './tools/tool.ts'
export type { OnTurnEnd, TurnOutcome } from './tools/turn-end.ts'
