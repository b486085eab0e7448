import type { Command } from "commander";
import type { CommandContext, LazyCommand } from "./command.ts";
import { addLazyCommands, examples } from "./command.ts";

const commands: readonly LazyCommand[] = [
  {
    name: "ls",
    usage: "[options]",
    about: "List sessions, most recently active first.",
    load: async () => (await import("./sessions-ls.ts")).registerSessionsLs,
  },
  {
    name: "search",
    usage: "[options] <text...>",
    about: "Search messages and tool results for words or for the answer to a question.",
    load: async () => (await import("./sessions-ls.ts")).registerSessionsSearch,
  },
  {
    name: "show",
    usage: "[options] <ref>",
    about: "Print the messages on the active branch, by default the newest 200.",
    load: async () => (await import("./sessions-show.ts")).registerSessionsShow,
  },
  {
    name: "tree",
    usage: "[options] <ref>",
    about: "Draw all branches, with labels, compactions and the leaf.",
    load: async () => (await import("./sessions-show.ts")).registerSessionsTree,
  },
  {
    name: "new",
    usage: "[options] [name]",
    about: "Create a session.",
    load: async () => (await import("./sessions-change.ts")).registerSessionsNew,
  },
  {
    name: "rename",
    usage: "[options] <ref> [label]",
    about: "Set a session's display name, or its label, which can be used to refer to it.",
    load: async () => (await import("./sessions-change.ts")).registerSessionsRename,
  },
  {
    name: "compact",
    usage: "[options] <ref>",
    about:
      "Replace the older part of a session's context with a summary, written by its model or by you. The log keeps everything.",
    load: async () => (await import("./sessions-compact.ts")).registerSessionsCompact,
  },
  {
    name: "fork",
    usage: "[options] <ref>",
    about: "Create a session that contains the branch up to an entry (default: the current leaf).",
    load: async () => (await import("./sessions-change.ts")).registerSessionsFork,
  },
  {
    name: "reset",
    usage: "<ref>",
    about:
      "Start a new session under the same key. The old session is kept as agent:<id>:reset:<session ID>.",
    load: async () => (await import("./sessions-change.ts")).registerSessionsReset,
  },
  {
    name: "archive",
    usage: "[options] <ref>",
    about: "Hide a session from lists until it receives new input.",
    load: async () => (await import("./sessions-change.ts")).registerSessionsArchive,
  },
  {
    name: "export",
    usage: "[options] <ref>",
    about: "Export a session as JSONL for programs, or as Markdown or a single HTML file for people.",
    load: async () => (await import("./sessions-export.ts")).registerSessionsExport,
  },
  {
    name: "import",
    usage: "[options] <path...>",
    about:
      "Import sessions from pi, OpenClaw, Claude Code or Codex. Sessions that were already imported are skipped.",
    load: async () => (await import("./sessions-import.ts")).registerSessionsImport,
  },
  {
    name: "rm",
    usage: "[options] <ref>",
    about: "Move a session to the trash. With --purge, permanently delete a session that is in the trash.",
    load: async () => (await import("./sessions-remove.ts")).registerSessionsRm,
  },
  {
    name: "restore",
    usage: "<ref>",
    about: "Restore a session from the trash.",
    load: async () => (await import("./sessions-remove.ts")).registerSessionsRestore,
  },
  {
    name: "redact",
    usage: "[options] <ref> <entryId...>",
    about:
      "Permanently erase the content of entries, in every copy. The entries keep their positions in the tree.",
    load: async () => (await import("./sessions-remove.ts")).registerSessionsRedact,
  },
  {
    name: "repair",
    usage: "<ref>",
    about:
      "Repair a damaged session file, keeping the original next to it. For a session in the store, only show the damage.",
    load: async () => (await import("./sessions-repair.ts")).registerSessionsRepair,
  },
];

export function registerSessions(sessions: Command, context: CommandContext): void {
  sessions.addHelpText("after", examples("skein sessions ls", "skein sessions tree ./trip.jsonl"));
  addLazyCommands(sessions, context, commands);
}
