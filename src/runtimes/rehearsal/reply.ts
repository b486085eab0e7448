import type { JSONObject } from "@ai-sdk/provider";

/** What a model of ours is about to say. */
export interface Reply {
  readonly thinking: string;
  readonly text: string;
  readonly calls: readonly ReplyCall[];
  /** Over how long the text is spread. */
  readonly spreadMs: number;
}

export interface ReplyCall {
  readonly name: string;
  readonly arguments: JSONObject;
}

export const says = (text: string): Reply => ({ thinking: "", text, calls: [], spreadMs: 0 });

export const calls = (...made: readonly ReplyCall[]): Reply => ({ ...says(""), calls: made });
