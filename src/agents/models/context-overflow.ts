/** Messages with which providers reject a request that is longer than the context window. */
const wordings: readonly (readonly [provider: string, words: RegExp])[] = [
  ["Anthropic", /prompt is too long/i],
  ["Anthropic, by bytes", /request_too_large|request exceeds the maximum size/i],
  ["Anthropic and Bedrock", /input length and `?max_tokens`? exceed context limit/i],
  ["Bedrock", /input is too long for requested model/i],
  ["OpenAI and servers like it", /context[_ ]length[_ ]exceeded/i],
  ["OpenAI", /exceeds? (?:the |this )?(?:model'?s )?(?:maximum )?context (?:window|length)/i],
  ["OpenAI, OpenRouter, vLLM and LiteLLM", /maximum context length/i],
  ["LiteLLM", /ContextWindowExceededError/],
  ["OpenRouter", /exceeds (?:the )?maximum allowed input length/i],
  ["Google, by tokens", /input token count .{0,40}exceeds/i],
  ["Google, by bytes", /request payload size exceeds the limit/i],
  ["Mistral", /too large for model .{0,80}context length/i],
  ["xAI", /maximum prompt length is \d/i],
  ["Groq", /reduce (?:the length of the messages|your message size)/i],
  ["Together", /is longer than the model'?s context length|`inputs` tokens \+ `max_new_tokens` must be/i],
  ["GitHub Copilot", /prompt token count of \d+ exceeds the limit|max_prompt_tokens_exceeded/i],
  ["Kimi", /exceeded model token limit/i],
  ["MiniMax", /context window exceeds limit/i],
  ["Z.ai", /prompt exceeds max length|model_context_window_exceeded/i],
  ["LM Studio", /greater than the context length|tokens when context the overflows/i],
  ["llama.cpp", /exceeds the available context size|exceed_context_size_error/i],
  ["Ollama", /prompt too long; exceeded (?:max )?context length/i],
  ["any other", /too many tokens/i],
];

/** Errors about token rate limits are worded similarly, but a shorter request does not help there. */
const throttled = /throttl|rate limit|too many requests|per (?:minute|day)/i;

/** How many characters of each text are searched. */
const maxSearched = 4000;

/**
 * Whether a provider rejected a request because it exceeds the context window, judging by the HTTP status and the error
 * texts.
 */
export function isContextOverflow(status: number | null, texts: readonly string[]): boolean {
  if (status === 429 || status === 401 || status === 403) return false;
  if (status === 413) return true;
  const starts = texts.map((text) => text.slice(0, maxSearched));
  if (starts.some((text) => throttled.test(text))) return false;
  return starts.some((text) => wordings.some(([, words]) => words.test(text)));
}
