import { clsx } from 'clsx'
import type { ReactNode } from 'react'

export interface Column<T> {
  head: string
  cell: (row: T) => ReactNode
  /** Align numbers to the right. */
  figures?: boolean
  /** Hide the column if the table is narrow. */
  wide?: boolean
  /** Keep the column visible when the table scrolls, for columns with buttons. */
  pinned?: boolean
}

interface Props<T> {
  label: string
  columns: readonly Column<T>[]
  rows: readonly T[]
  keyOf: (row: T) => string
}

/** A horizontally scrollable table. The first column is the row header. */
export function Table<T>({ label, columns, rows, keyOf }: Props<T>) {
  return (
    <div
      // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
      tabIndex={0}
      role="region"
      aria-label={label}
      className="@container overflow-x-auto rounded-xl border border-line"
    >
      <table className="w-full border-collapse text-sm">
        <thead>
          <tr className="border-b border-line">
            {columns.map((column) => (
              <th
                key={column.head}
                scope="col"
                className={clsx(cellOf(column), 'bg-canvas py-2.5 text-xs font-medium whitespace-nowrap text-muted')}
              >
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {rows.map((row) => (
            <tr key={keyOf(row)} className="align-top">
              {columns.map((column, at) =>
                at === 0 ? (
                  <th key={column.head} scope="row" className={clsx(cellOf(column), 'py-3 font-normal')}>
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.head} className={clsx(cellOf(column), 'bg-surface py-3')}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function cellOf<T>(column: Column<T>): string {
  return clsx(
    'px-4',
    column.figures ? 'text-right tabular-nums' : 'text-left',
    column.wide && '@max-xl:hidden',
    column.pinned && 'sticky right-0',
  )
}
