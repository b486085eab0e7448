import { skeinDeps } from "../../compose/call-deps.ts";
import type { SkeinInside } from "../../compose/open-skein.ts";
import { openSkein } from "../../compose/open-skein.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import type { SkeinEvent } from "../../core/events.ts";
import { present } from "../../core/present.ts";
import type { Tokens } from "../../gateway/auth/tokens.ts";
import type { Handlers } from "../../gateway/calls/contract.ts";
import type { Skein } from "../../sessions/skein/skein.ts";
import type { FilesStore } from "../../store/files/store.ts";
import { CallsUnderWay, counted } from "./calls-under-way.ts";
import type { Grace } from "./current.ts";
import type { GatewayPieces, ServingDeps } from "./pieces.ts";
import type { Configured } from "./reloading.ts";

/** One Skein of a gateway, with all that stands on it. */
export interface Serving extends Configured {
  readonly skein: Skein;
  readonly deps: ServingDeps;
  readonly handlers: Handlers;
}

export interface ServingOptions {
  readonly where: LoadOptions;
  readonly loaded: LoadedConfig;
  readonly tokens: Tokens;
  readonly pieces: Pick<GatewayPieces, "handlers">;
  /** Told of everything that happens in it, until it is closed. */
  emit(event: SkeinEvent): void;
  /** Told of each call that has ended. */
  called(method: string, outcome: "ok" | "error"): void;
}

/** Opens a Skein that works, as a configuration says. */
export async function openServing(options: ServingOptions): Promise<Serving> {
  const { where, loaded, tokens, pieces, emit, called } = options;
  const { cwd, env, file } = where;
  let inside: SkeinInside | null = null;
  const skein = await openSkein(
    // Wherever the file says now that the sessions are: a process stays with its folder.
    { cwd, env, dir: loaded.config.store.path, ...present({ config: file ?? loaded.file }), metrics: true },
    (parts) => {
      inside = parts;
    },
  );
  const { store, runs, worker } = inside as unknown as SkeinInside;
  const leave = skein.subscribe(emit);
  const calls = new CallsUnderWay();
  const close = async ({ runsMs, callsMs }: Grace) => {
    // First it takes nothing on any more; who is being answered by it still gets the answer.
    await Promise.all([worker.close(runsMs), calls.idle(callsMs)]);
    await skein.close({ graceMs: 0 });
    leave();
  };
  try {
    // Opened on a folder, never in memory.
    const deps = { ...skeinDeps(skein, loaded, { runs, store: store as FilesStore }), tokens };
    return { skein, deps, handlers: counted(pieces.handlers(deps), calls, called), loaded, close };
  } catch (error) {
    await close({ runsMs: 0, callsMs: 0 });
    throw error;
  }
}
