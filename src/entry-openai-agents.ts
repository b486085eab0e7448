import "./check-node.ts";

export {
  type AgentSession,
  type HistoryMutations,
  type HistoryTransaction,
  openAgentSession,
} from "./adapters/openai-agents/session.ts";
