// Another process on a folder. Changes the session "a" on request and reports when it is done.

import { openFilesStore } from "../../src/store/files/store.ts";
import { said } from "./store-calls.ts";

const store = await openFilesStore({ root: process.argv[2] ?? "", durability: "os" });
const { sessions } = store;

async function idsOf(): Promise<string[]> {
  const page = await sessions.page({}, "a", { along: "branch", limit: 100 });
  return page?.entries.map(({ id }) => id) ?? [];
}

const acts: Readonly<Record<string, () => Promise<unknown>>> = {
  append: () => sessions.append({}, "a", [{ draft: said("told by another process") }]),
  branch: async () => sessions.branch({}, "a", (await idsOf())[0] ?? null),
  redact: async () => sessions.redact({}, "a", (await idsOf()).slice(0, 1)),
  reset: () => sessions.reset({}, "a", { sessionId: "fresh" }),
  remove: () => sessions.remove({}, "fresh"),
};

process.once("disconnect", () => void store.close());
process.on("message", (act: string) => {
  void (acts[act]?.() ?? Promise.reject(new Error(act))).then(
    () => process.send?.("done"),
    (error: unknown) => process.send?.(String(error)),
  );
});
process.send?.("ready");
