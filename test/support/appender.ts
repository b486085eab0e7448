// Appends to one of Ann's sessions until it is killed, and reports each append.

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
