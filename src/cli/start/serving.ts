import { skeinDeps } from "../../compose/call-deps.ts";
import type { SkeinInside } from "../../compose/open-skein.ts";
import { openSkein } from "../../compose/open-skein.ts";
import type { GatewayPieces, ServingDeps } from "../../compose/pieces.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { LoadOptions } from "../../config/root.ts";
import type { SkeinEvent } from "../../core/events.ts";
import type { Tokens } from "../../gateway/auth/tokens.ts";
import type { Handlers } from "../../gateway/calls/contract.ts";
import type { Skein } from "../../sessions/skein/skein.ts";
import type { FilesStore } from "../../store/files/store.ts";
import { CallsUnderWay } from "./calls-under-way.ts";
import type { Grace } from "./current.ts";
import type { Configured } from "./reloading.ts";

/** One Skein of a gateway, with all that stands on it. */
export interface Serving extends Configured {
  readonly skein: Skein;
  readonly deps: ServingDeps;
  readonly handlers: Handlers;
  /** Everything that is asked of it goes through these: it is not closed under them. */
  readonly calls: CallsUnderWay;
  /** Why it should not be given work now; empty: it should. */
  health(): ReturnType<FilesStore["upkeep"]["health"]>;
  /** Throws `unavailable` once the root folder was moved or deleted. */
  checkInPlace(): void;
}

export interface ServingOptions {
  readonly where: LoadOptions;
  readonly loaded: LoadedConfig;
  readonly tokens: Tokens;
  readonly pieces: Pick<GatewayPieces, "handlers">;
  readonly reload: NonNullable<ServingDeps["reload"]>;
  /** Told of everything that happens in it, from its very start until it is closed. */
  emit(event: SkeinEvent): void;
}

/** Opens a Skein that works, as a configuration says. */
export async function openServing(options: ServingOptions): Promise<Serving> {
  const { where, loaded, tokens, pieces, reload, emit } = options;
  const { cwd, env } = where;
  const inside = Promise.withResolvers<SkeinInside & { leave(): void }>();
  const skein = await openSkein({ cwd, env, loaded, metrics: true, usersInProcessFolder: "none" }, (parts) =>
    inside.resolve({ ...parts, leave: parts.bus.subscribe(emit) }),
  );
  const { store, runs, worker, files, leave } = await inside.promise;
  const calls = new CallsUnderWay();
  const close = async ({ runsMs, callsMs }: Grace) => {
    // First it takes nothing on any more; who is being answered by it still gets the answer.
    await Promise.all([worker.close(runsMs), calls.idle(callsMs)]);
    await skein.close({ graceMs: 0 });
    leave();
  };
  try {
    // Opened on a folder, never in memory.
    const { upkeep } = store as FilesStore;
    const deps = { ...skeinDeps(skein, loaded, { runs, store, files }), tokens, reload };
    const { health, checkInPlace } = upkeep;
    return { skein, deps, handlers: pieces.handlers(deps), calls, loaded, health, checkInPlace, close };
  } catch (error) {
    await close({ runsMs: 0, callsMs: 0 });
    throw error;
  }
}
