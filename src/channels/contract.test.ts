import { expect, test } from "vitest";
import type { Channel } from "./contract.ts";
import { threadOpener } from "./contract.ts";

test("[FAM31] a channel with threads opens them; others, and missing ones, do not", async () => {
  const deliver = async () => ({});
  const desk: Channel & { readonly opened: string } = {
    id: "desk",
    opened: "t",
    deliver,
    async openThread(_, title) {
      return `${this.opened}:${title}`;
    },
  };
  const channels = new Map<string, Channel>([
    ["desk", desk],
    ["plain", { id: "plain", deliver }],
  ]);
  expect(await threadOpener(channels, "desk")?.({ channel: "desk" }, "Pages")).toBe("t:Pages");
  expect(threadOpener(channels, "plain")).toBeNull();
  expect(threadOpener(channels, "none")).toBeNull();
});
