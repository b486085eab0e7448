import type { Command } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples, refHelp } from "./options.ts";

export function registerContext(program: Command, terminal: Terminal): void {
  program
    .command("context")
    .description("Print what a model would be sent from where the session stands. Nothing is sent.")
    .argument("<ref>", refHelp)
    .option("--model <provider/model>", "for this model (default: the session's model)")
    .option("--base-url <url>", "where an OpenAI-compatible server is, for a provider that is not known")
    .option("--explain", "list every change that was made to the messages for the model")
    .option("--wire", "print the body of the request, as the provider would get it")
    .addHelpText(
      "after",
      examples(
        "skein context trip",
        "skein context trip --model openai/gpt-5 --explain",
        "skein context trip --model google/gemini-2.5-pro --wire",
        "skein context ./trip.jsonl --model local/qwen3 --base-url http://127.0.0.1:11434/v1 --json",
      ),
    )
    .action(async (name: string, _, command: Command) => {
      const { showContext } = await import("../commands/context.ts");
      await showContext(terminal, name, command.optsWithGlobals());
    });
}
