import { afterEach, describe, expect, test } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { createAcpRuntime } from "../../src/runtimes/acp/running/runtime.ts";
import { acpLink } from "../../src/sessions/running/acp-link.ts";
import type { SessionRecord } from "../../src/store/contract.ts";
import { scriptedAgent } from "../support/acp/script.ts";
import { answering } from "../support/model.ts";
import { lineOf, openCall, openTurn, scope } from "../support/turn.ts";

/** A run that somebody else had before: the runtime itself, with the agent as a real child process. */

let close: () => Promise<void> = async () => undefined;
afterEach(() => close());
