import "./check-node.ts";

export { type RehearsalOptions, rehearsalModel } from "./agents/rehearsal/rehearsal-model.ts";
export { type ModelStep, type ScriptedModel, scriptedModel } from "./agents/rehearsal/scripted-model.ts";
export { type DiskFault, type DiskOperation, SimulatedDisk } from "./store/files/simulated-disk.ts";
export { checkRequest } from "./testing/server/check-request.ts";
export { type ReceivedRequest, startTwin, type Twin, type TwinOptions } from "./testing/server/start-twin.ts";
export { type TemporaryFolder, temporaryFolder } from "./testing/support/temporary-folder.ts";
export { type TestClock, testClock } from "./testing/support/test-clock.ts";
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
