import { useCall, useGateway, useMay } from "../connect/gateway.tsx";
import styles from "./choice.module.css";
import { useQueryFields } from "./query-fields.ts";

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: Readonly<Partial<Record<string, string>>>;
  /** More options under headings, after the others. */
  readonly groups?: Readonly<Partial<Record<string, readonly string[]>>>;
  readonly onChange: (value: string) => void;
}

/**
 * A labeled menu. Uses the browser's own control, because that works with a keyboard, by touch and with every screen
 * reader.
 */
export function Choice({ label, value, options, groups = {}, onChange }: ChoiceProps) {
  return (
    <label className={styles.choice}>
      <span>{label}</span>
      <select aria-label={label} value={value} onChange={({ target }) => onChange(target.value)}>
        {Object.entries(options).map(([each, name]) => (
          <option key={each} value={each}>
            {name}
          </option>
        ))}
        {Object.entries(groups).map(([group, members = []]) => (
          <optgroup key={group} label={group}>
            {members.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}

/** Selects the user whose sessions a page shows, for a token that covers all users. Stored as `user` in the URL. */
export function UserChoice() {
  const { client } = useGateway();
  const isAllowed = useMay("users.list") && client.hello.allUsers;
  const { data } = useCall("users.list", { limit: 500 }, { isEnabled: isAllowed });
  const [query, change] = useQueryFields();
  const named = (data?.users ?? []).flatMap(({ userId }) => (userId === undefined ? [] : [userId]));
  if (named.length === 0) return null;
  return (
    <Choice
      label="User"
      value={query.get("user") ?? ""}
      options={{ "": "default user", ...Object.fromEntries(named.map((each) => [each, each])) }}
      // Another user's keys would refer to different sessions.
      onChange={(user) => change({ user: user || null, from: null, to: null, key: null })}
    />
  );
}
