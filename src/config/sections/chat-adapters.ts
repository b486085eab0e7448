/** How a setting of an adapter is read. `json` is an object, written as text. */
type AdapterValue = "text" | "json" | "number";

interface AdapterSetting {
  readonly kind: AdapterValue;
  /** The description in the error for a missing setting. Absent for an optional setting. */
  readonly required?: string;
}

/** A chat platform that the Chat SDK has an adapter for. */
export interface ChatPlatform {
  readonly title: string;
  readonly package: string;
  /** The package's function that creates the adapter. */
  readonly factory: string;
  readonly settings: Readonly<Record<string, AdapterSetting>>;
  /** At least one of these settings must be set. */
  readonly oneOf?: readonly string[];
  /** Always passed to the adapter, because Skein depends on these values. */
  readonly fixed: Readonly<Record<string, unknown>>;
  /** Longer answers are split, because adapters truncate messages that are too long for their platform. */
  readonly maxChars: number;
  /** `true` if the platform sends messages over a connection that the bot opens. */
  readonly hasConnection?: true;
  /** The default for the shortest time between two edits of an answer. */
  readonly editIntervalMs: number;
}

const text: AdapterSetting = { kind: "text" };
const needed = (required: string): AdapterSetting => ({ kind: "text", required });

/** The adapters for channels of type `chat-sdk`. */
export const chatPlatforms = {
  slack: {
    title: "Slack",
    package: "@chat-adapter/slack",
    factory: "createSlackAdapter",
    settings: {
      botToken: needed("the Slack app's bot token (xoxb-…)"),
      signingSecret: needed("the Slack app's signing secret"),
      apiUrl: text,
    },
    // The outbox retries failed calls. A second retry mechanism inside a call could deliver a message twice.
    fixed: {
      mode: "webhook",
      webClientOptions: { retryConfig: { retries: 0 }, rejectRateLimitedCalls: true, timeout: 20_000 },
    },
    maxChars: 11_000,
    editIntervalMs: 1500,
  },
  telegram: {
    title: "Telegram",
    package: "@chat-adapter/telegram",
    factory: "createTelegramAdapter",
    settings: {
      botToken: needed("the token that BotFather returned"),
      secretToken: needed("the secret_token that the webhook was registered with"),
      userName: text,
      apiUrl: text,
    },
    fixed: { mode: "webhook", mentionOnReply: true },
    maxChars: 3500,
    editIntervalMs: 3000,
  },
  discord: {
    title: "Discord",
    package: "@chat-adapter/discord",
    factory: "createDiscordAdapter",
    settings: {
      botToken: needed("the Discord application's bot token"),
      publicKey: needed("the Discord application's public key"),
      applicationId: needed("the Discord application's ID"),
      apiUrl: text,
    },
    fixed: {},
    hasConnection: true,
    maxChars: 1900,
    editIntervalMs: 1500,
  },
  teams: {
    title: "Microsoft Teams",
    package: "@chat-adapter/teams",
    factory: "createTeamsAdapter",
    settings: {
      appId: needed("the Teams app's ID"),
      appPassword: needed("the Teams app's client secret"),
      appTenantId: text,
      appType: text,
      apiUrl: text,
    },
    fixed: {},
    maxChars: 20_000,
    editIntervalMs: 2000,
  },
  gchat: {
    title: "Google Chat",
    package: "@chat-adapter/gchat",
    factory: "createGoogleChatAdapter",
    settings: {
      credentials: { kind: "json", required: "a service account key, as JSON" },
      googleChatProjectNumber: text,
      endpointUrl: text,
      apiUrl: text,
    },
    // Without one of these, the adapter cannot check who signed a request.
    oneOf: ["googleChatProjectNumber", "endpointUrl"],
    fixed: {},
    maxChars: 3900,
    editIntervalMs: 2000,
  },
  github: {
    title: "GitHub",
    package: "@chat-adapter/github",
    factory: "createGitHubAdapter",
    settings: {
      webhookSecret: needed("the webhook secret"),
      userName: needed("the name that is used in mentions of the bot"),
      token: text,
      appId: text,
      privateKey: text,
      installationId: { kind: "number" },
      apiUrl: text,
    },
    oneOf: ["token", "appId"],
    fixed: {},
    maxChars: 60_000,
    editIntervalMs: 5000,
  },
  whatsapp: {
    title: "WhatsApp",
    package: "@chat-adapter/whatsapp",
    factory: "createWhatsAppAdapter",
    settings: {
      accessToken: needed("the WhatsApp app's access token"),
      appSecret: needed("the app secret"),
      phoneNumberId: needed("the phone number ID"),
      verifyToken: needed("the token used to verify the webhook"),
      apiUrl: text,
    },
    fixed: {},
    maxChars: 3900,
    // WhatsApp messages cannot be edited.
    editIntervalMs: 0,
  },
} as const satisfies Readonly<Record<string, ChatPlatform>>;

export type ChatAdapterName = keyof typeof chatPlatforms;
export const chatAdapterNames = Object.keys(chatPlatforms) as ChatAdapterName[];

export function platformOf(name: ChatAdapterName): ChatPlatform {
  return chatPlatforms[name];
}

/** Returns the settings in the form that the adapter expects. Text that is not valid is returned unchanged. */
export function parseAdapterSettings(
  name: ChatAdapterName,
  written: Readonly<Record<string, string>>,
): Readonly<Record<string, unknown>> {
  const { settings } = platformOf(name);
  return Object.fromEntries(
    Object.entries(written).map(([key, value]) => [
      key,
      parseValue(settings[key]?.kind ?? "text", value) ?? value,
    ]),
  );
}

/** Returns `null` if the text is not of this kind. */
export function parseValue(kind: AdapterValue, written: string): unknown {
  if (kind === "text") return written;
  if (kind === "number") return /^\d{1,15}$/.test(written) ? Number(written) : null;
  try {
    const value: unknown = JSON.parse(written);
    return typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}
