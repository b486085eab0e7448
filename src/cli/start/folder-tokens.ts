import { openFolder } from "../../compose.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { Clock } from "../../core/clock.ts";
import { firstToken } from "../../gateway/auth/first-token.ts";
import { createLinkCode } from "../../gateway/auth/link-codes.ts";
import { Tokens } from "../../gateway/auth/tokens.ts";

/** The tokens of a folder, which a gateway has for as long as its process lives, whatever is reloaded. */
export interface FolderTokens {
  readonly root: string;
  readonly tokens: Tokens;
  /** The admin token was made by this start. */
  readonly isFirst: boolean;
  /** A link for a page at this address, good once and for ten minutes. */
  link(url: string): string;
  /** Runs alone among all processes of the folder. */
  exclusively<T>(act: () => T): T;
  close(): Promise<void>;
}

export async function openFolderTokens({ config }: LoadedConfig, clock: Clock): Promise<FolderTokens> {
  const root = config.store.path;
  const folder = await openFolder({
    root,
    durability: config.durability,
    lockTimeoutMs: config.lock.timeoutMs,
  });
  try {
    const { ledger } = folder.work;
    const tokens = new Tokens({ ledger, clock });
    const { tokenId, isNew } = firstToken(root, tokens);
    return {
      root,
      tokens,
      isFirst: isNew,
      link: (url) => `${url}/#code=${createLinkCode(tokens, { tokenId })}`,
      exclusively: (act) => ledger.exclusively(act),
      close: () => folder.close(),
    };
  } catch (error) {
    await folder.close();
    throw error;
  }
}
