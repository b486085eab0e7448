import type { Command } from "commander";
import { Option } from "commander";
import type { ThinkingLevel } from "../../agents/tools/define-agent.ts";
import type { Terminal } from "../output/terminal.ts";
import { examples, wholeNumber } from "./options.ts";

const spokenTo =
  "a session: key (made if it is not there), main, session id, label, or a beginning of the id";

/** Commands that say something to a session. */
const thinkingLevels: readonly ThinkingLevel[] = ["off", "minimal", "low", "medium", "high", "xhigh"];

export function registerTalking(program: Command, terminal: Terminal): void {
  registerChat(program, terminal);
  program
    .command("send")
    .description("Say something to a session, print the reply, and stay until all that it set off has ended.")
    .argument("<ref>", spokenTo)
    .argument("<text...>", "what is said; - reads it from the input")
    .option("--model <provider/model>", "answer with this model")
    .addOption(new Option("--thinking <level>", "how much the model is to think").choices(thinkingLevels))
    .option("--system <text>", "the system prompt of this turn, instead of the agent's")
    .addOption(
      new Option("--queue <mode>", "what becomes of it while a turn runs (default: as configured)").choices([
        "steer",
        "followup",
        "interrupt",
      ]),
    )
    .option("--key <idempotencyKey>", "the same one again is the same run")
    .option("--timeout <seconds>", "the longest that the run may take", wholeNumber)
    .option("--image <file>", "show it an image; may be given several times", collected)
    .option("--no-wait", "exit once it is accepted; skein start runs it")
    .addHelpText(
      "after",
      examples(
        'skein send main "plan three days in Kyoto"',
        "skein send agent:main:session:porto repeat good morning --json",
        "skein send trip describe the gardens --key gardens-3 --timeout 600",
        "skein send trip repeat hello --queue followup --no-wait",
      ),
    )
    .action(async (ref: string, words: string[], _, command: Command) => {
      const { sendCommand } = await import("../commands/send.ts");
      await sendCommand(terminal, ref, words, command.optsWithGlobals());
    });
}

function registerChat(program: Command, terminal: Terminal): void {
  program
    .command("chat")
    .description("Talk with a session, line by line. Lines that are piped in are a turn each.")
    .argument("[ref]", spokenTo, "main")
    .option("--model <provider/model>", "answer with this model")
    .addOption(
      new Option("--thinking [level]", "show what the model thinks, at this level if one is given").choices(
        thinkingLevels,
      ),
    )
    .addHelpText(
      "after",
      examples("skein chat", "skein chat trip --thinking", "skein chat agent:main:session:porto"),
    )
    .action(async (ref: string, _, command: Command) => {
      const { chatCommand } = await import("../commands/chat.ts");
      await chatCommand(terminal, ref, command.optsWithGlobals());
    });
}

function collected(file: string, files: readonly string[] = []): readonly string[] {
  return [...files, file];
}
