import type { Command } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples } from "./options.ts";
import { registerChanging } from "./sessions-changing.ts";
import { registerForGood } from "./sessions-for-good.ts";
import { registerInterchange } from "./sessions-interchange.ts";
import { registerReading } from "./sessions-reading.ts";

export function registerSessions(program: Command, terminal: Terminal): void {
  const sessions = program
    .command("sessions")
    .description("Look at sessions, and change them.")
    .addHelpText("after", examples("skein sessions ls", "skein sessions tree ./trip.jsonl"));
  registerReading(sessions, terminal);
  registerChanging(sessions, terminal);
  registerInterchange(sessions, terminal);
  registerForGood(sessions, terminal);
}
