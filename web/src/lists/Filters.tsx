import { clsx } from 'clsx'
import { FolderOpen, ListFilter, X } from 'lucide-react'
import { type ReactNode, useId, useState } from 'react'
import { Link } from 'wouter'
import { type Filter, type Shelf, useListChoices } from '@/data/conversations'
import type { Project } from '@/data/projects'
import { agentName } from '@/lists/agents'
import { countOf, EVERYTHING, SHELVES, setFilter } from '@/lists/filter'
import { fileHref } from '@/projects/places'
import { text } from '@/text'
import { IconButton } from '@/ui/Button'

/** The filters of the list of conversations: project and status, and a panel with the others. */
export function Filters({ filter, projects }: { filter: Filter; projects: readonly Project[] }) {
  const [open, setOpen] = useState(false)
  const panel = useId()
  const project = projects.find((project) => project.id === filter.project)
  const more = countOf({ ...filter, project: '' })
  return (
    <div className="px-3 pb-1.5">
      <div className="flex items-center gap-1">
        <select
          aria-label={text.sidebar.project}
          value={filter.project}
          onChange={(event) => setFilter({ project: event.target.value })}
          className={clsx(SELECT, 'min-w-0 grow font-medium')}
        >
          <option value="">{text.sidebar.allProjects}</option>
          {projects.map((project) => (
            <option key={project.id} value={project.id}>
              {project.name}
            </option>
          ))}
        </select>
        {project?.root_path && (
          <Link
            href={fileHref(project.id)}
            aria-label={text.files.of(project.name)}
            title={text.files.of(project.name)}
            className="grid size-8 shrink-0 place-items-center rounded-lg text-muted hover:bg-hover hover:text-ink max-md:size-11"
          >
            <FolderOpen size={16} aria-hidden />
          </Link>
        )}
        <select
          aria-label={text.sidebar.filter}
          value={filter.shelf}
          onChange={(event) => setFilter({ shelf: event.target.value as Shelf })}
          className={clsx(SELECT, 'text-muted')}
        >
          {SHELVES.map((shelf) => (
            <option key={shelf} value={shelf}>
              {text.sidebar.shelves[shelf]}
            </option>
          ))}
        </select>
        <IconButton
          label={text.filters.title}
          aria-expanded={open}
          aria-controls={panel}
          onClick={() => setOpen(!open)}
          className={clsx((open || more > 0) && 'bg-accent-soft text-accent')}
        >
          <ListFilter size={16} aria-hidden />
        </IconButton>
      </div>
      <div id={panel} hidden={!open}>
        {open && <Panel filter={filter} />}
      </div>
      {!open && more > 0 && (
        <div className="mt-1 flex min-h-8 items-center gap-1 rounded-lg bg-accent-soft pl-2.5 text-xs">
          <span className="min-w-0 grow truncate">
            <span className="sr-only">{text.filters.active}</span>
            {describe(filter)}
          </span>
          <IconButton
            label={text.filters.clear}
            onClick={() => setFilter({ ...EVERYTHING, shelf: filter.shelf, project: filter.project })}
          >
            <X size={14} aria-hidden />
          </IconButton>
        </div>
      )}
    </div>
  )
}

/** The filters by agent, model, machine, tag and date. Those by machine and tag are shown only if there are several values. */
function Panel({ filter }: { filter: Filter }) {
  const { data } = useListChoices()
  const hosts = data?.hosts ?? []
  const tags = data?.tags ?? []
  return (
    <div className="mt-1.5 space-y-2 rounded-xl border border-line bg-surface p-2.5">
      <Choice
        label={text.filters.agent}
        all={text.filters.allAgents}
        value={filter.agent}
        values={data?.agents ?? []}
        nameOf={agentName}
        choose={(agent) => setFilter({ agent })}
      />
      <Choice
        label={text.filters.model}
        all={text.filters.allModels}
        value={filter.model}
        values={data?.models ?? []}
        choose={(model) => setFilter({ model })}
      />
      {(hosts.length > 0 || filter.host) && (
        <Choice
          label={text.filters.host}
          all={text.filters.allHosts}
          value={filter.host}
          values={[LOCAL, ...hosts]}
          nameOf={hostName}
          choose={(host) => setFilter({ host })}
        />
      )}
      {(tags.length > 0 || filter.tag) && (
        <Choice
          label={text.filters.tag}
          all={text.filters.allTags}
          value={filter.tag}
          values={tags}
          choose={(tag) => setFilter({ tag })}
        />
      )}
      <Day label={text.filters.from} value={filter.from} most={filter.to} choose={(from) => setFilter({ from })} />
      <Day label={text.filters.to} value={filter.to} least={filter.from} choose={(to) => setFilter({ to })} />
      {countOf(filter) > 0 && (
        <button
          type="button"
          onClick={() => setFilter({ ...EVERYTHING, shelf: filter.shelf })}
          className="min-h-8 w-full cursor-pointer rounded-lg text-xs font-medium text-accent hover:bg-hover max-md:min-h-11"
        >
          {text.filters.clear}
        </button>
      )}
    </div>
  )
}

interface ChoiceProps {
  label: string
  all: string
  value: string
  values: readonly string[]
  nameOf?: (value: string) => string
  choose: (value: string) => void
}

function Choice({ label, all, value, values, nameOf = (value) => value, choose }: ChoiceProps) {
  const listed = !value || values.includes(value) ? values : [value, ...values]
  return (
    <Labeled label={label}>
      <select value={value} onChange={(event) => choose(event.target.value)} className={FIELD}>
        <option value="">{all}</option>
        {listed.map((value) => (
          <option key={value} value={value}>
            {nameOf(value)}
          </option>
        ))}
      </select>
    </Labeled>
  )
}

interface DayProps {
  label: string
  value: string
  least?: string
  most?: string
  choose: (day: string) => void
}

function Day({ label, value, least, most, choose }: DayProps) {
  return (
    <Labeled label={label}>
      <input
        type="date"
        value={value}
        min={least || undefined}
        max={most || undefined}
        onChange={(event) => choose(event.target.value)}
        className={FIELD}
      />
    </Labeled>
  )
}

function Labeled({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is in `children`
    <label className="flex items-center gap-2 text-xs text-muted">
      <span className="w-13 shrink-0">{label}</span>
      {children}
    </label>
  )
}

function hostName(host: string): string {
  return host === LOCAL ? text.filters.thisHost : host
}

/** Return the active filters other than the project as text. */
function describe({ agent, model, host, tag, from, to }: Filter): string {
  return [
    agent && agentName(agent),
    model,
    host && hostName(host),
    tag && `#${tag}`,
    (from || to) && text.filters.days(from, to),
  ]
    .filter(Boolean)
    .join(' · ')
}

/** The value of the filter by machine for this machine. */
const LOCAL = 'local'

const SELECT = 'h-8 cursor-pointer rounded-lg bg-transparent px-1.5 text-xs hover:bg-hover max-md:h-11 max-md:text-sm'
const FIELD =
  'h-8 min-w-0 grow rounded-lg border border-line-strong/60 bg-raised px-1.5 text-xs text-ink max-md:h-11 max-md:text-sm'
