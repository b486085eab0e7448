import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import type { Scope, Store } from "../../store/contract.ts";
import { importPeer } from "../require-peer.ts";

/** Loaded with this module, because its classes are the base classes of Skein's. */
export const checkpoints = await importPeer<typeof import("@langchain/langgraph-checkpoint")>(
  "langgraph",
  "@langchain/langgraph-checkpoint",
  ">=1.1.4 <2",
);

/** Where the sessions of a LangGraph application are stored. */
export interface LangGraphOptions {
  /** A store from `createStore` or `createSkein`. The adapter does not close it. */
  readonly store: Pick<Store, "sessions" | "state">;
  /** The owner of the threads. If absent, they belong to the unnamed user. */
  readonly userId?: string;
  /** The agent that the threads' sessions belong to. Defaults to `langgraph`. */
  readonly agentId?: string;
}

export function scopeOf({
  userId,
  agentId = "langgraph",
}: LangGraphOptions): Scope & { readonly agentId: string } {
  return { agentId: parseAgentId(agentId), ...present({ userId }) };
}
