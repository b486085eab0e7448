// Appends to a session of ann's until it is killed; says so after each one.

import { openFilesStore } from "../../src/store/files/store.ts";
import { said } from "./store-calls.ts";

const [, , root = "", sessionId = ""] = process.argv;
const store = await openFilesStore({ root });
for (;;) {
  const { entries } = await store.sessions.append({ userId: "ann", agentId: "main" }, sessionId, [
    { draft: said("more") },
  ]);
  process.stdout.write(`${entries[0]?.id}\n`);
}
