import { tryListening } from "../src/cli/gateway/port.ts";
import { loadConfig } from "../src/config/load.ts";
import type { LoadOptions } from "../src/config/root.ts";
import { findRunning } from "../src/gateway/running-file.ts";

/**
 * The usual port, where nobody has said which one and another program has it; else `null`. Whoever only tries us out is better
 * off with any other port than with an error. A configuration with a mistake is refused.
 */
export async function usualPortTaken(
  args: readonly string[],
  where: LoadOptions,
  listen: typeof tryListening = tryListening,
): Promise<number | null> {
  const { config, sources } = await loadConfig(where);
  const { host, port } = config.gateway;
  const isSaid = sources.get("gateway.port")?.from !== "default";
  if (isSaid || args.some((arg) => /^--port(?:=|$)/.test(arg))) return null;
  if (findRunning(config.store.path) !== null) return null;
  try {
    await listen(host, port);
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EADDRINUSE" ? port : null;
  }
}
