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
import { thrownText } from "../../../core/text.ts";
import type { ClientFiles } from "../files.ts";
import type { Terminals } from "../terminals.ts";
import type { PermissionDesk } from "./permissions.ts";

const refusedCode = -32000;

/** What an agent asks of us. Between turns nobody watches over it, and nothing new is granted. */
export class ClientRequests {
  readonly #files: ClientFiles | null;
  readonly #terminals: Terminals;
  /** Of the turn that is under way; `null`: none is. */
  desk: PermissionDesk | null = null;

  constructor(files: ClientFiles | null, terminals: Terminals) {
    this.#files = files;
    this.#terminals = terminals;
  }

  register(app: ClientApp): ClientApp {
    const { fs, session, terminal } = methods.client;
    const terminals = this.#terminals;
    return app
      .onRequest(session.requestPermission, async ({ params }): Promise<RequestPermissionResponse> => {
        return { outcome: (await this.desk?.forCall(params)) ?? { outcome: "cancelled" } };
      })
      .onRequest(fs.readTextFile, ({ params }) => this.#read(params))
      .onRequest(fs.writeTextFile, ({ params }) => this.#write(params))
      .onRequest(terminal.create, ({ params }) => this.#create(params))
      .onRequest(terminal.output, ({ params }) => terminals.output(params))
      .onRequest(terminal.waitForExit, ({ params }) => terminals.waitForExit(params))
      .onRequest(terminal.kill, ({ params }) => terminals.kill(params))
      .onRequest(terminal.release, ({ params }) => terminals.release(params));
  }

  /** What a terminal has printed so far; `null`: there is none of this id. */
  terminalText(terminalId: string): string | null {
    return this.#terminals.text(terminalId);
  }

  close(): Promise<void> {
    return this.#terminals.close();
  }

  async #read(params: ReadTextFileRequest): Promise<ReadTextFileResponse> {
    this.#inTurn();
    return this.#inFolder().readTextFile(params).catch(asRefusal);
  }

  /** Inside its folder an agent writes as it likes: it asks for permission by itself where it wants to be sure. */
  async #write(params: WriteTextFileRequest): Promise<void> {
    if (this.#inTurn().policy === "deny") refuse("Files are not written here: permissions are denied");
    await this.#inFolder().writeTextFile(params).catch(asRefusal);
  }

  async #create(params: CreateTerminalRequest): Promise<CreateTerminalResponse> {
    const verdict = await this.#inTurn().forTerminal(params);
    if (verdict === "granted") return this.#terminals.create(params);
    return refuse(
      `The command was not allowed: ${verdict === "refused" ? "permission was denied" : "the turn was stopped"}`,
    );
  }

  #inFolder(): ClientFiles {
    return this.#files ?? refuse("There is no working directory");
  }

  #inTurn(): PermissionDesk {
    return this.desk ?? refuse("No turn is under way");
  }
}

function refuse(sentence: string): never {
  throw new RequestError(refusedCode, sentence);
}

/** The sentence goes to the agent as it is. */
function asRefusal(error: unknown): never {
  return refuse(thrownText(error));
}
