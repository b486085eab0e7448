import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { ErrorCode } from "../../src/index.ts";
import { SkeinError } from "../../src/index.ts";
import { root, sourceFiles } from "./source.ts";

const read = (path: string) => readFileSync(join(root, path), "utf8");

interface Surface {
  readonly file: string;
  readonly values: readonly string[];
  readonly types: readonly string[];
}

/** The exports of each package entry point. A name added here stays public. */
const surfaces: Readonly<Record<string, Surface>> = {
  ".": {
    file: "src/index.ts",
    values: [
      "HookRegistry",
      "HookStop",
      "RunError",
      "SessionTree",
      "SkeinError",
      "buildContext",
      "continueRecent",
      "createSkein",
      "defineAgent",
      "defineTool",
      "displayKey",
      "formatKey",
      "isCorrupt",
      "listSessionFiles",
      "openSession",
      "parseAgentId",
      "parseKey",
      "parseSession",
      "parseSessionId",
      "prepareTranscript",
      "prunedResults",
      "resolveReference",
      "resolveTranscriptPolicy",
      "sessionTools",
      "xray",
    ],
    types: [
      "AccessAction",
      "AccessExplanation",
      "AccessStep",
      "AgentDefinition",
      "AgentSpec",
      "AgentState",
      "Api",
      "AppendedMessages",
      "Approval",
      "ApprovalService",
      "ArgumentsOf",
      "Asker",
      "BudgetFigures",
      "Change",
      "Channel",
      "Clock",
      "ConfigInput",
      "ContextMessage",
      "ContextOptions",
      "CorruptLine",
      "DeliveryTarget",
      "Diagnostic",
      "EmbeddingModel",
      "Entry",
      "EntryDraft",
      "ErrorCode",
      "ForeignTool",
      "Hook",
      "HookName",
      "Hooks",
      "IdSource",
      "ImageLimits",
      "ImagePort",
      "InboundMessage",
      "LanguageModel",
      "LastScheduledRun",
      "LoneSession",
      "Lookup",
      "Message",
      "MessageDraft",
      "MessageOrigin",
      "ModelMessageLike",
      "ModelRef",
      "MountOptions",
      "MountedGateway",
      "OpenSessionOptions",
      "OutboundMessage",
      "OutboxRow",
      "ParsedKey",
      "ParsedSession",
      "Plan",
      "PlannedItem",
      "PolicyRequest",
      "PreparedTranscript",
      "PruningOptions",
      "Receipt",
      "Run",
      "RunQuery",
      "RunService",
      "RunState",
      "RunUsage",
      "RuntimeContext",
      "ScheduleInfo",
      "ScheduleService",
      "SendOptions",
      "SessionContext",
      "SessionFile",
      "SessionHandle",
      "SessionHeader",
      "SessionKind",
      "SessionService",
      "SessionToolResults",
      "SessionXray",
      "ShowRequestOptions",
      "Skein",
      "SkeinEvent",
      "SkeinOptions",
      "StandardSchema",
      "SubagentSpec",
      "ThinkingLevel",
      "TokensByPart",
      "ToolCallOptions",
      "ToolCalled",
      "ToolContext",
      "ToolDefinition",
      "ToolListing",
      "ToolParameters",
      "ToolSpec",
      "ToolState",
      "TranscriptMessage",
      "TranscriptOptions",
      "TranscriptPolicy",
      "TreeAppendOptions",
      "TreeOptions",
      "Turn",
      "TurnEvent",
      "TurnResult",
      "Xray",
      "XrayOptions",
      "XraySession",
    ],
  },
  "./store": {
    file: "src/entry-store.ts",
    values: ["channelOf", "compactSession", "createStore", "guardedAppend"],
    types: [
      "AppendItem",
      "AppendOptions",
      "Appended",
      "BlobStore",
      "CheckFinding",
      "CompactionDeps",
      "CompactionDone",
      "CompactionNotDone",
      "CompactionOptions",
      "CompactionOutcome",
      "Disk",
      "EmbeddedEntry",
      "Embedding",
      "EntryPage",
      "EntryRange",
      "FilesStore",
      "FilesUpkeep",
      "GuardDeps",
      "GuardNote",
      "GuardOptions",
      "GuardedAppend",
      "HealthProblem",
      "Json",
      "ListedSession",
      "MetaPatch",
      "Namespace",
      "Progress",
      "Recovery",
      "Redaction",
      "Scope",
      "SearchHit",
      "SearchQuery",
      "SearchStore",
      "SessionDigest",
      "SessionInit",
      "SessionMeta",
      "SessionPage",
      "SessionQuery",
      "SessionReach",
      "SessionRecord",
      "SessionSort",
      "SessionStore",
      "StateStore",
      "StateValue",
      "Store",
      "StoreChange",
      "StoreOptions",
      "Summarize",
      "SummaryRequest",
      "SummaryUsage",
      "TrashedSession",
      "UnembeddedEntry",
      "WatchStore",
    ],
  },
  "./postgres": {
    file: "src/entry-postgres.ts",
    values: ["openPostgres"],
    types: ["Backend", "PostgresOptions", "S3Options"],
  },
  "./conformance": {
    file: "src/entry-conformance.ts",
    values: ["saboteurs", "storeConformance"],
    types: ["Case", "Saboteur", "StoreHarness", "StoreUnderTest"],
  },
  "./testing": {
    file: "src/entry-testing.ts",
    values: [
      "SimulatedDisk",
      "checkRequest",
      "redactThinking",
      "rehearsalModel",
      "scriptedModel",
      "signatures",
      "startTwin",
      "temporaryFolder",
      "testClock",
    ],
    types: [
      "DiskFault",
      "DiskOperation",
      "ModelStep",
      "ReceivedRequest",
      "Refusal",
      "RehearsalOptions",
      "Scripted",
      "ScriptedBlock",
      "ScriptedFault",
      "ScriptedModel",
      "ScriptedReply",
      "ScriptedUsage",
      "Signatures",
      "TemporaryFolder",
      "TestClock",
      "Twin",
      "TwinApi",
      "TwinLimits",
      "TwinOptions",
      "TwinRequest",
    ],
  },
  "./client": {
    file: "src/entry-client.ts",
    values: ["CallError", "connect", "readAnnouncement"],
    types: [
      "ClientState",
      "ConnectOptions",
      "EventFilter",
      "EventStream",
      "FollowOptions",
      "MethodName",
      "Params",
      "ReceivedEvent",
      "Result",
      "SkeinClient",
    ],
  },
  "./langgraph": {
    file: "src/entry-langgraph.ts",
    values: ["SkeinSaver", "SkeinStore"],
    types: ["LangGraphOptions", "SaverOptions"],
  },
  "./claude-agent-sdk": {
    file: "src/entry-claude-agent-sdk.ts",
    values: ["openSessionStore"],
    types: [
      "ClaudeSessionStore",
      "SessionStoreOptions",
      "TranscriptEntry",
      "TranscriptKey",
      "TranscriptSummary",
    ],
  },
  "./ai-sdk": {
    file: "src/entry-ai-sdk.ts",
    values: ["createChat", "openLoop", "readUIMessages"],
    types: [
      "Chat",
      "ChatCall",
      "ChatMessage",
      "ChatOptions",
      "ErrorTextOptions",
      "Loop",
      "LoopCall",
      "LoopOptions",
      "StartOptions",
      "StoredMessage",
    ],
  },
  "./openai-agents": {
    file: "src/entry-openai-agents.ts",
    values: ["openAgentSession"],
    types: ["AgentSession", "HistoryMutations", "HistoryTransaction"],
  },
};
const publicNames = Object.values(surfaces).flatMap(({ file, values, types }) =>
  [...values, ...types].map((name) => ({ file, name })),
);

/**
 * Returns the file from which a package entry point exports a name. Another file might use the same name for something
 * else.
 */
function homeOf(file: string, name: string): string {
  for (const [, names = "", path = ""] of read(file).matchAll(/\{([^}]*)\} from "\.\/(.+?)"/g)) {
    if (new RegExp(`\\b${name}\\b`).test(names)) return `src/${path}`;
  }
  throw new Error(`${file} exports no ${name}`);
}

describe("the public surface", () => {
  test.each(Object.values(surfaces))(
    "[HSE4] the exported names of $file are the pinned ones",
    async (surface) => {
      expect(Object.keys(await import(join(root, surface.file))).toSorted()).toEqual(surface.values);
      const exported = [...read(surface.file).matchAll(/\btype (\w+)|export type \{([^}]*)\}/g)].flatMap(
        (match) => (match[1] ?? match[2] ?? "").split(",").map((each) => each.trim()),
      );
      expect(exported.filter((each) => each !== "").toSorted()).toEqual(surface.types);
    },
  );

  test("[HSE4] the package has exactly these entries", () => {
    const manifest = JSON.parse(read("package.json"));
    expect(Object.keys(manifest.exports)).toEqual([...Object.keys(surfaces), "./package.json"]);
  });

  test("[HSE4] no two entries of the package use one name for different things", () => {
    const homes = Map.groupBy(publicNames, ({ name }) => name);
    for (const places of homes.values()) {
      expect(new Set(places.map(({ file, name }) => homeOf(file, name))).size).toBe(1);
    }
  });

  test.each(publicNames)(
    "[HSE4] $name of $file has a doc comment, and a function or class also has an example",
    ({ file, name }) => {
      const pattern = new RegExp(
        `/\\*\\*((?:(?!\\*/)[\\s\\S])*)\\*/\\nexport (?:async )?(function|class|const|interface|type) ${name}\\b`,
      );
      const [, comment = "", kind] = pattern.exec(read(homeOf(file, name))) ?? [];
      expect(comment.trim()).not.toBe("");
      if (kind === "function" || kind === "class") expect(comment).toMatch(/@example\n \* ```ts\n/);
    },
  );

  test("[HSE5] code in README, docs and doc comments compiles, and a snippet that does not is caught", () => {
    const snippets = collectSnippets();
    expect(snippets.length).toBeGreaterThan(10);
    const broken = { name: "broken", code: 'import { nothing } from "skein";\nnothing();' };
    const problems = compile([...snippets, broken])
      .trim()
      .split("\n");
    expect(problems).toEqual([expect.stringMatching(/broken\.mts\(1,10\): error .*nothing/)]);
  });
});

describe("the error catalogue", () => {
  const rows = [
    ...read("docs/errors.md").matchAll(
      /^\| `(?<code>\w+)` \| (?<status>\d+) \| (?<text>.+?) \| (?<remedy>.+?) \|$/gm,
    ),
  ].map(({ groups }) => groups as { code: ErrorCode; status: string; text: string; remedy: string });
  /** Details that leave each placeholder unchanged. */
  const placeholders = new Proxy({}, { get: (_, name) => `{${String(name)}}` }) as never;

  test.each(rows)("[ERR1] $code matches docs/errors.md", ({ code, status, text, remedy }) => {
    const error = new SkeinError(code, placeholders);
    expect({ status: String(error.status), message: error.message, remedy: error.remedy }).toEqual({
      status,
      message: `${text} ${remedy}`,
      remedy,
    });
  });

  test("[ERR1] every code is documented and raised somewhere", () => {
    const source = sourceFiles()
      .map((file) => file.text)
      .join("\n");
    const raised = new Set([...source.matchAll(/new SkeinError\(\s*"(\w+)"/g)].map((match) => match[1]));
    expect(rows.map(({ code }) => code).toSorted()).toEqual([...raised].toSorted());
  });
});

interface Snippet {
  name: string;
  code: string;
}

function collectSnippets(): Snippet[] {
  const pages = ["README.md", "CONTRIBUTING.md", ...globSync("docs/**/*.md", { cwd: root })];
  const texts = [
    ...pages.map((path) => ({ path, text: read(path) })),
    ...sourceFiles().map(({ path, text }) => ({ path, text: text.replaceAll(/^\s*\* ?/gm, "") })),
  ];
  return texts.flatMap(({ path, text }) =>
    [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((match, index) => ({
      name: `${path.replaceAll(/\W/g, "_")}_${index + 1}`,
      code: match[1] as string,
    })),
  );
}

/**
 * Returns the compiler errors for the snippets. Each snippet is compiled as a separate module that imports the package
 * by name.
 */
function compile(snippets: readonly Snippet[]): string {
  const folder = join(root, "node_modules/.cache/skein-snippets");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const snippet of snippets)
    writeFileSync(join(folder, `${snippet.name}.mts`), `${snippet.code}\nexport {};\n`);
  const config = {
    extends: join(root, "tsconfig.json"),
    compilerOptions: {
      paths: {
        skein: [join(root, "src/index.ts")],
        "skein/store": [join(root, "src/entry-store.ts")],
        "skein/postgres": [join(root, "src/entry-postgres.ts")],
        "skein/conformance": [join(root, "src/entry-conformance.ts")],
        "skein/testing": [join(root, "src/entry-testing.ts")],
        "skein/client": [join(root, "src/entry-client.ts")],
        "skein/langgraph": [join(root, "src/entry-langgraph.ts")],
        "skein/claude-agent-sdk": [join(root, "src/entry-claude-agent-sdk.ts")],
        "skein/ai-sdk": [join(root, "src/entry-ai-sdk.ts")],
        "skein/openai-agents": [join(root, "src/entry-openai-agents.ts")],
      },
      typeRoots: [join(root, "node_modules/@types")],
    },
    include: ["*.mts", join(root, "examples/**/*.ts")],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(root, "node_modules/.bin/tsc");
  return spawnSync(tsc, ["--project", folder, "--pretty", "false"], { encoding: "utf8" }).stdout;
}
