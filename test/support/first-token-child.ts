// A process for the first-token tests. Requests a folder's first token and prints the result.
import { writeSync } from "node:fs";
import { join } from "node:path";
import { ensureAdminToken } from "../../src/gateway/auth/admin-token.ts";
import { TokenBooks } from "./token-books.ts";

const [root = ""] = process.argv.slice(2);
const { tokens, db } = new TokenBooks(join(root, "work.db"));
writeSync(1, JSON.stringify(await ensureAdminToken(root, tokens)));
db.close();
