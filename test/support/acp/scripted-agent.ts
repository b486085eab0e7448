import { appendFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import {
  agent,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
} from "@agentclientprotocol/sdk/unstable";
import { KeptSessions } from "./kept-sessions.ts";
import { playTurn } from "./play-turn.ts";
import type { AgentScript } from "./script.ts";

/** An ACP agent that follows the script in its first argument and can be well-behaved or hostile. */

const script = JSON.parse(process.argv[2] ?? "{}") as AgentScript;
const sessions = new KeptSessions(script);
const cancels = new Map<string, () => void>();
const never = new Promise<never>(() => undefined);

if (script.pidFile !== undefined) appendFileSync(script.pidFile, `${process.pid}\n`);
if (script.ignoreSigterm === true) {
  process.on("SIGTERM", () => undefined);
  setInterval(() => undefined, 60_000);
}
if (script.start === "exit") {
  process.stderr.write("cannot find my own configuration\n");
  process.exit(3);
}
if (script.start === "garbage") {
  process.stdout.write('{"jsonrpc": broken\n');
  setInterval(() => undefined, 60_000);
}
if (script.start === "banner") process.stdout.write("Welcome to the agent!\n\n");

const can = { load: true, resume: true, list: true, ...script.can };

const app = agent({ name: "scripted" })
  .onRequest(methods.agent.initialize, async () => {
    if (script.start === "hang" || script.start === "garbage") return never;
    return {
      protocolVersion: script.start === "wrong_version" ? 99 : PROTOCOL_VERSION,
      agentInfo: { name: "scripted", version: "1.0.0" },
      authMethods: [{ id: "key", name: "A key of your own" }],
      agentCapabilities: {
        loadSession: can.load,
        promptCapabilities: { image: true, embeddedContext: true },
        sessionCapabilities: {
          ...(can.resume ? { resume: {} } : {}),
          ...(can.list ? { list: {} } : {}),
          ...(can.systemPrompt === true ? { systemPrompt: {} } : {}),
          close: {},
        },
      },
    };
  })
  .onRequest(methods.agent.session.new, async ({ params }) => {
    if (script.start === "hang_new") return never;
    if (script.start === "auth_required") throw RequestError.authRequired();
    const sessionId = sessions.begin(params.cwd);
    sessions.setSystem(sessionId, params.systemPrompt);
    return { sessionId, ...sessions.settings(sessionId) };
  })
  .onRequest(methods.agent.session.load, async ({ params, client }) => {
    const { sessionId } = params;
    for (const { role, text } of sessions.history(sessionId)) {
      const sessionUpdate = role === "user" ? "user_message_chunk" : "agent_message_chunk";
      const update = { sessionUpdate, content: { type: "text", text } } as const;
      await client.notify(methods.client.session.update, { sessionId, update });
    }
    return sessions.settings(sessionId);
  })
  .onRequest(methods.agent.session.resume, async ({ params }) => {
    sessions.history(params.sessionId);
    sessions.setSystem(params.sessionId, params.systemPrompt);
    return sessions.settings(params.sessionId);
  })
  .onRequest(methods.agent.session.list, async () => ({ sessions: sessions.list() }))
  .onRequest(methods.agent.session.setConfigOption, async ({ params }) => ({
    configOptions: sessions.setOption(params.sessionId, params.configId, params.value),
  }))
  .onRequest(methods.agent.session.setMode, async ({ params }) => {
    sessions.setMode(params.sessionId, params.modeId);
    return {};
  })
  .onRequest(methods.agent.session.close, async () => ({}))
  .onNotification(methods.agent.session.cancel, async ({ params }) => cancels.get(params.sessionId)?.())
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const { sessionId } = params;
    const cancelled = Promise.withResolvers<void>();
    if (script.ignoreCancel !== true) cancels.set(sessionId, cancelled.resolve);
    const steps = sessions.nextTurn(sessionId);
    return playTurn(steps, { script, sessions, client, params, cancelled: cancelled.promise });
  });

/** This method is no longer part of the protocol. */
if (script.isListedOnly !== true)
  app.onRequest(
    "session/set_model",
    (params) => params as { sessionId: string; modelId: string },
    async ({ params }) => {
      sessions.setModel(params.sessionId, params.modelId);
      return {};
    },
  );

const connection = app.connect(
  ndJsonStream(
    Writable.toWeb(process.stdout) as WritableStream<Uint8Array>,
    Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>,
  ),
);
await connection.closed;
if (script.ignoreSigterm !== true) process.exit(0);
