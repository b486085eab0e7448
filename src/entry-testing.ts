export { checkRequest } from "./testing/server/check-request.ts";
export type { ReceivedRequest } from "./testing/server/request-log.ts";
export { startTwin, type Twin, type TwinOptions } from "./testing/server/start-twin.ts";
export type {
  Refusal,
  Scripted,
  ScriptedBlock,
  ScriptedFault,
  ScriptedReply,
  ScriptedUsage,
  Signatures,
  TwinApi,
  TwinLimits,
  TwinRequest,
} from "./testing/twins/contract.ts";
export { redactThinking, signatures } from "./testing/twins/signatures.ts";
