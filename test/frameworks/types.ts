import type * as sdk from "@anthropic-ai/claude-agent-sdk";
import type { BaseCheckpointSaver, BaseStore } from "@langchain/langgraph-checkpoint";
import type { ClaudeSessionStore } from "skein/claude-agent-sdk";
import type { SkeinSaver, SkeinStore } from "skein/langgraph";
import type { ClaudeAgentSdk } from "../../src/adapters/claude-agent-sdk/contract.ts";

/** Compiles only if the adapters have the types of their frameworks. `peers.test.ts` compiles it. */
export interface AdapterTypes {
  readonly langgraph: [Matches<SkeinSaver, BaseCheckpointSaver>, Matches<SkeinStore, BaseStore>];
  readonly claude: [
    Matches<ClaudeSessionStore, sdk.SessionStore>,
    Matches<Pick<typeof sdk, keyof ClaudeAgentSdk>, ClaudeAgentSdk>,
  ];
}

type Matches<Adapter extends Framework, Framework> = Adapter;
