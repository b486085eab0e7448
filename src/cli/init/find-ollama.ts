import { gatherStream } from "../../core/gather-bytes.ts";

/** An Ollama that answered. */
export interface FoundOllama {
  /** Where it speaks as OpenAI does. */
  readonly baseUrl: string;
  readonly models: readonly string[];
}

const usualPort = "11434";
const timeoutMs = 500;
const mostBytes = 1_000_000;
const mostModels = 100;

/** Asks the local Ollama for its models; `null`: none answers in time, or something else does. */
export async function findOllama(host: string | undefined): Promise<FoundOllama | null> {
  const base = ollamaBase(host);
  if (base === null) return null;
  const text = await fetchText(`${base}/api/tags`);
  const models = text === null ? null : modelNames(text);
  return models === null ? null : { baseUrl: `${base}/v1`, models };
}

/** What OLLAMA_HOST stands for: an address, a host, a port, or nothing; `null`: none of these. */
export function ollamaBase(host: string | undefined): string | null {
  const given = (host ?? "").trim();
  const hasScheme = /^https?:\/\//i.test(given);
  const url = URL.parse(hasScheme ? given : `http://${/^(:\d|$)/.test(given) ? "127.0.0.1" : ""}${given}`);
  if (url === null || url.username !== "" || url.password !== "") return null;
  // A server listens on 0.0.0.0; nobody is reached there.
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1";
  if (!hasScheme && !/:\d+(?:\/|$)/.test(given)) url.port = usualPort;
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** The names in an answer to `/api/tags`; `null`: it is none. Names that could not stand in a file are left out. */
export function modelNames(text: string): readonly string[] | null {
  const answer = parsed(text);
  const models = isObject(answer) ? answer.models : null;
  if (!Array.isArray(models)) return null;
  const names = models.flatMap((model: unknown) => {
    const name = isObject(model) ? model.name : null;
    return typeof name === "string" && /^[A-Za-z0-9][\w.:/@-]{0,199}$/.test(name) ? [name] : [];
  });
  return [...new Set(names)].slice(0, mostModels);
}

/** The body of a good answer; `null`: there is none, or it is too long or too late. */
async function fetchText(url: string): Promise<string | null> {
  try {
    const response = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(timeoutMs) });
    const bytes = await gatherStream(response.body, mostBytes);
    return response.ok && bytes !== null ? bytes.toString("utf8") : null;
  } catch {
    // Whatever went wrong, no Ollama can be used there, and that is all that was asked.
    return null;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
