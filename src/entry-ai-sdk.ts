import "./check-node.ts";

export { type Chat, type ChatCall, type ChatOptions, createChat } from "./adapters/ai-sdk/chat.ts";
export {
  type Loop,
  type LoopCall,
  type LoopOptions,
  openLoop,
  type StartOptions,
} from "./adapters/ai-sdk/loop.ts";
export {
  type ChatMessage,
  type ErrorTextOptions,
  readUIMessages,
  type StoredMessage,
} from "./adapters/ai-sdk/ui-messages.ts";
