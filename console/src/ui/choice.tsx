import styles from "./choice.module.css";

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: Readonly<Partial<Record<string, string>>>;
  readonly onChange: (value: string) => void;
}

/** A labeled menu. The browser's own, because it works by keyboard, by touch and in every screen reader. */
export function Choice({ label, value, options, onChange }: ChoiceProps) {
  return (
    <label className={styles.choice}>
      <span>{label}</span>
      <select aria-label={label} value={value} onChange={({ target }) => onChange(target.value)}>
        {Object.entries(options).map(([each, name]) => (
          <option key={each} value={each}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
