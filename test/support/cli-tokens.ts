import { openFolder } from "../../src/app/folder.ts";
import { Tokens } from "../../src/gateway/auth/tokens.ts";

/** A token in a folder, with the ID from the help examples. */
export async function seedToken(root: string): Promise<void> {
  const store = await openFolder({ root, durability: "os" });
  try {
    const random = (bytes: number) => new Uint8Array(bytes).fill(0xa7);
    const request = { name: "seeded", scopes: ["read"], user: null } as const;
    await new Tokens(store.work, { random }).create(request, null);
  } finally {
    await store.close();
  }
}
