import { afterEach } from "vitest";
import { lineOf } from "../text.ts";
import type { AcpSession, AcpSkein, AcpSkeinOptions } from "./acp-skein.ts";
import { openAcpSkein } from "./acp-skein.ts";

let open: AcpSkein[] = [];

/** Closed after the test, which fails if an agent process remains. */
export async function skeinWith(options: AcpSkeinOptions = {}): Promise<AcpSkein> {
  const skein = await openAcpSkein(options);
  open.push(skein);
  return skein;
}

export function closeAfterEach(): void {
  afterEach(async () => {
    const opened = open;
    open = [];
    for (const skein of opened) await skein.close();
  });
}

/** Returns one line per message. */
export async function lines(acp: AcpSkein, session: AcpSession): Promise<string[]> {
  return (await acp.entries(session)).filter(({ type }) => type === "message").map(lineOf);
}
