import type {
  ClientApp,
  CreateTerminalRequest,
  CreateTerminalResponse,
  ReadTextFileRequest,
  ReadTextFileResponse,
  RequestPermissionResponse,
  WriteTextFileRequest,
} from "@agentclientprotocol/sdk/unstable";
import { methods, RequestError } from "@agentclientprotocol/sdk/unstable";
import { codeOf } from "../../core/errors.ts";
import { endOfText, thrownText } from "../../core/text.ts";
import type { ClientFiles } from "./client-files.ts";
import type { PermissionRequests } from "./permission-requests.ts";
import type { Terminals } from "./terminals.ts";

/** Not -32000, which asks the client to log in. */
const refusedCode = -32602;
const maxReleasedTexts = 32;
const maxReleasedChars = 200_000;

/**
 * Handles an agent's requests. Between turns, no permission can be granted, so requests to access a file or start a
 * command are rejected.
 */
export class ClientRequests {
  readonly #files: ClientFiles;
  readonly #terminals: Terminals;
  /**
   * The output of released terminals. Many agents release a terminal before they send the result of the call that used
   * it.
   */
  readonly #releasedTexts = new Map<string, string>();
  /** The permission requests in the current turn. */
  permissions: PermissionRequests | null = null;

  constructor(files: ClientFiles, terminals: Terminals) {
    this.#files = files;
    this.#terminals = terminals;
  }

  register(app: ClientApp): ClientApp {
    const { fs, session, terminal } = methods.client;
    const terminals = this.#terminals;
    return app
      .onRequest(session.requestPermission, async ({ params }): Promise<RequestPermissionResponse> => {
        return { outcome: (await this.permissions?.decideCall(params)) ?? { outcome: "cancelled" } };
      })
      .onRequest(fs.readTextFile, ({ params }) => this.#readFile(params))
      .onRequest(fs.writeTextFile, ({ params }) => this.#writeFile(params))
      .onRequest(terminal.create, ({ params }) => this.#createTerminal(params))
      .onRequest(terminal.output, ({ params }) => respond(() => terminals.output(params)))
      .onRequest(terminal.waitForExit, ({ params }) => respond(() => terminals.waitForExit(params)))
      .onRequest(terminal.kill, ({ params }) => respond(() => terminals.kill(params)))
      .onRequest(terminal.release, ({ params }) => respond(() => this.#releaseTerminal(params.terminalId)));
  }

  /** Returns a terminal's output so far, or `null` if there is no such terminal. */
  terminalText(terminalId: string): string | null {
    const released = this.#releasedTexts.get(terminalId);
    if (released !== undefined) return released;
    try {
      return this.#terminals.output({ terminalId }).output;
    } catch {
      return null;
    }
  }

  close(): Promise<void> {
    return this.#terminals.close();
  }

  /** Ends the terminals of a stopped turn. Their output remains readable. */
  async endTerminals(): Promise<void> {
    await this.#terminals.started();
    await Promise.allSettled(this.#terminals.ids.map((terminalId) => this.#releaseTerminal(terminalId)));
  }

  async #readFile(params: ReadTextFileRequest): Promise<ReadTextFileResponse> {
    this.#requireTurn();
    return respond(() => this.#files.readTextFile(params), params.path);
  }

  /** Writing inside the folder needs no approval. An agent that is configured to ask sends its own request first. */
  async #writeFile(params: WriteTextFileRequest): Promise<void> {
    if (this.#requireTurn().policy === "deny") refuse("Files cannot be written: permissions are denied");
    await respond(() => this.#files.writeTextFile(params));
  }

  async #createTerminal(params: CreateTerminalRequest): Promise<CreateTerminalResponse> {
    const permissions = this.#requireTurn();
    const decided = await permissions.decideTerminal(params);
    const verdict = permissions.isClosed ? "cancelled" : decided;
    if (verdict === "granted") return respond(() => this.#terminals.create(params));
    return refuse(
      `The command was not allowed: ${verdict === "refused" ? "permission was denied" : "the turn was stopped"}`,
    );
  }

  async #releaseTerminal(terminalId: string): Promise<void> {
    const text = this.terminalText(terminalId);
    const released = this.#terminals.release({ terminalId });
    if (text !== null) this.#releasedTexts.set(terminalId, endOfText(text, maxReleasedChars));
    const [oldest] = this.#releasedTexts.keys();
    if (this.#releasedTexts.size > maxReleasedTexts && oldest !== undefined)
      this.#releasedTexts.delete(oldest);
    await released;
  }

  #requireTurn(): PermissionRequests {
    return this.permissions ?? refuse("No turn is running");
  }
}

function refuse(sentence: string): never {
  throw new RequestError(refusedCode, sentence);
}

/** Sends a rejection to the agent as a sentence. A missing file has its own error code, which agents rely on. */
async function respond<T>(act: () => T | Promise<T>, path = ""): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (path !== "" && codeOf(error) === "ENOENT") throw RequestError.resourceNotFound(path);
    return refuse(thrownText(error));
  }
}
