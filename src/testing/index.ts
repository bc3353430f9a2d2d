export { CrashPointError } from './crashes/crash-point-error.ts'
export { killAtEveryWrite } from './crashes/kill-at-every-write.ts'
export type {
  CrashOutcome,
  CrashPoint,
  CrashReport,
  ToolExecution,
  TurnEnd,
  TurnWrite,
} from './crashes/report.ts'
export type { CrashScenario, CrashSettings, DriveTools } from './crashes/scenario.ts'
export type { DemoModelOptions } from './demo-model.ts'
export { demoIntroduction, demoModel, demoModelName } from './demo-model.ts'
export { gate } from './gate.ts'
export type { ModelServer, ModelServerOptions } from './model-server.ts'
export { startModelServer } from './model-server.ts'
export type { Chunking } from './pieces.ts'
export type { After, AnswerOptions, CutOptions, RawOptions } from './replies.ts'
export { cut, hang, httpError, rawBody, rawSse, rules, streamError, text, toolCalls } from './replies.ts'
export type {
  AnswerReply,
  BadEnd,
  BrokenReply,
  Gate,
  Passage,
  RawReply,
  Reply,
  ReplyFunction,
  ReplyToolCall,
  Respond,
  RulesReply,
} from './reply.ts'
export type { Ending, LoggedRequest } from './request-log.ts'
export type { DemoModelProcess } from './start-demo-model.ts'
export { startDemoModel } from './start-demo-model.ts'
export type { Countable } from './usage.ts'
export { countTokens, defaultUsage } from './usage.ts'
export type { WireError, WireMessage, WirePart, WireRequest, WireTool, WireToolCall, WireUsage } from './wire.ts'
