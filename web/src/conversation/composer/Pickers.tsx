import { clsx } from 'clsx'
import { Bot, ChevronDown, Cpu, Folder, ShieldCheck, Timer } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useId, useLayoutEffect, useRef, useState } from 'react'
import { useSession } from '@/app/session'
import { WebSearchSwitch } from '@/conversation/composer/WebSearchSwitch'
import { useProjects } from '@/data/projects'
import { useAgents, useModels, usePermissions } from '@/data/settings'
import { text } from '@/text'

export interface Choice {
  agent: string
  model: string
  /** The chosen mode. Empty means the mode of the conversation or the configuration. */
  mode: string
  /** The project of a new conversation. Empty means the project of its folder. */
  project: string
  /** True to make a new conversation temporary. */
  temporary: boolean
  /** True to search the web, false not to. Null means the setting of the conversation. */
  web: boolean | null
}

interface Props {
  /** True if the conversation doesn't exist yet, so that a project can be chosen. */
  isNew: boolean
  /** Id of the conversation, whose folder may define agents. Null if it has not started. */
  conversation: string | null
  choice: Choice
  /** The mode set in the conversation. Empty means that none is set. */
  mode: string
  /** The web search set in the conversation. Null means that none is set, so that the agent decides. */
  web: boolean | null
  choose: (change: Partial<Choice>) => void
}

const MODES: readonly Option[] = Object.entries(text.pickers.modes).map(([id, mode]) => ({ id, ...mode }))

/** The switch for searching the web, and pickers for project, agent, model and permission mode. */
export function Pickers({ isNew, conversation, choice, mode, web, choose }: Props) {
  const projects = useProjects()
  const models = useModels()
  const agents = useAgents(false, conversation)
  const session = useSession()
  const permissions = usePermissions(session.data?.scopes.includes('admin') ?? false)
  const agentList: Option[] = (agents.data?.data ?? []).map((agent) => ({
    id: agent.name,
    label: agent.name,
    about: agent.description,
  }))
  const modelList: Option[] = (models.data?.data ?? []).map((model) => ({
    id: model.id,
    label: model.model,
    about: model.provider,
  }))
  const agent = agents.data?.data.find((one) => one.name === choice.agent)
  const own: Option = {
    id: '',
    label: text.pickers.agentDefault,
    about: agent?.effective_model ?? '',
  }
  const configured: Option = {
    id: '',
    label: text.pickers.configuredMode,
    about: permissions.data ? text.pickers.modes[permissions.data.mode].label : '',
  }
  const projectList: Option[] = projects.map((project) => ({
    id: project.id,
    label: project.name,
    about: project.description || (project.root_path ?? ''),
  }))
  return (
    <>
      {agent?.agent_type === 'moot' && agent.role === 'write' && (
        <WebSearchSwitch on={choice.web ?? web} choose={(web) => choose({ web })} />
      )}
      {isNew && projectList.length > 1 && (
        <Picker
          name={text.pickers.project}
          small
          icon={<Folder size={15} aria-hidden className="shrink-0" />}
          options={[{ id: '', label: text.pickers.automatic, about: text.pickers.byFolder }, ...projectList]}
          chosen={choice.project}
          choose={(project) => choose({ project })}
        />
      )}
      {agentList.length > 1 && (
        <Picker
          name={text.pickers.agent}
          small
          icon={<Bot size={15} aria-hidden className="shrink-0" />}
          options={agentList}
          chosen={choice.agent}
          choose={(agent) => choose({ agent })}
        />
      )}
      <Picker
        name={text.pickers.model}
        icon={<Cpu size={15} aria-hidden className="shrink-0" />}
        options={[own, ...modelList]}
        chosen={choice.model}
        choose={(model) => choose({ model })}
        failed={models.isError}
      />
      <Picker
        name={text.pickers.mode}
        small
        icon={<ShieldCheck size={15} aria-hidden className="shrink-0" />}
        options={[configured, ...MODES]}
        chosen={choice.mode || mode}
        choose={(mode) => choose({ mode })}
      />
      {isNew && (
        <button
          type="button"
          role="switch"
          aria-checked={choice.temporary}
          aria-label={text.temporary.title}
          title={text.temporary.about}
          onClick={() => choose({ temporary: !choice.temporary })}
          className="flex h-8 min-w-0 cursor-pointer items-center gap-1.5 rounded-full px-2.5 text-sm text-muted hover:bg-hover hover:text-ink aria-checked:bg-accent-soft aria-checked:text-accent max-md:h-11 max-md:min-w-11 max-md:justify-center"
        >
          <Timer size={15} aria-hidden className="shrink-0" />
          <span className="@max-lg:hidden">{text.temporary.title}</span>
        </button>
      )}
    </>
  )
}

interface Option {
  id: string
  label: string
  about: string
}

interface PickerProps {
  name: string
  icon: ReactNode
  options: readonly Option[]
  chosen: string
  choose: (id: string) => void
  failed?: boolean
  /** Show only the icon on phones. */
  small?: boolean
}

const MANY = 8

/** A button with the current choice that opens a list. Long lists are searchable. */
function Picker({ name, icon, options, chosen, choose, failed = false, small = false }: PickerProps) {
  const id = useId()
  const [open, setOpen] = useState(false)
  const [filter, setFilter] = useState('')
  const [at, setAt] = useState(0)
  const button = useRef<HTMLButtonElement>(null)
  const box = useRef<HTMLDivElement>(null)
  const current = options.find((option) => option.id === chosen)
  const shown = options.filter((option) =>
    `${option.label} ${option.about}`.toLowerCase().includes(filter.toLowerCase()),
  )
  const label = current?.id ? current.label : (chosen || current?.about || current?.label || name).split('@')[0]

  function place() {
    const [from, list] = [button.current?.getBoundingClientRect(), box.current]
    if (!from || !list) return
    list.style.left = `${Math.max(8, Math.min(from.left, innerWidth - list.offsetWidth - 8))}px`
    const above = from.top - list.offsetHeight - 6
    list.style.top = `${above > 8 ? above : Math.min(from.bottom + 6, innerHeight - list.offsetHeight - 8)}px`
    list.querySelector<HTMLElement>('input, [role=listbox]')?.focus()
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: position the list only when it opens
  useLayoutEffect(() => {
    if (!open) return
    setFilter('')
    setAt(
      Math.max(
        0,
        options.findIndex((option) => option.id === chosen),
      ),
    )
    place()
  }, [open])

  function take(option: Option | undefined) {
    if (!option) return
    choose(option.id)
    box.current?.hidePopover()
    button.current?.focus()
  }

  function onKey(event: KeyboardEvent) {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step && shown.length) setAt((at + step + shown.length) % shown.length)
    else if (event.key === 'Enter') take(shown[at])
    else return
    event.preventDefault()
  }

  return (
    <>
      <button
        ref={button}
        type="button"
        popoverTarget={id}
        aria-haspopup="listbox"
        aria-expanded={open}
        aria-label={`${name}: ${label}`}
        title={name}
        className={clsx(
          'flex h-8 min-w-0 cursor-pointer items-center gap-1.5 rounded-full px-2.5 text-sm text-muted hover:bg-hover hover:text-ink max-md:h-11 max-md:min-w-11',
          small ? 'max-md:justify-center' : 'max-md:max-w-fit max-md:grow max-md:basis-11',
        )}
      >
        {icon}
        <span className={clsx('max-w-36 truncate', small && '@max-lg:hidden')}>{label}</span>
        <ChevronDown size={13} aria-hidden className="shrink-0 text-faint @max-lg:hidden" />
      </button>
      <div
        ref={box}
        id={id}
        role="group"
        aria-label={name}
        popover="auto"
        onToggle={(event) => {
          setOpen(event.newState === 'open')
        }}
        onKeyDown={onKey}
        className="fixed inset-auto m-0 w-80 max-w-[calc(100vw-1rem)] rounded-2xl border border-line bg-raised p-1.5 text-ink shadow-raised"
      >
        {open && options.length > MANY && (
          <input
            value={filter}
            onChange={(event) => {
              setFilter(event.target.value)
              setAt(0)
            }}
            role="combobox"
            aria-expanded
            aria-controls={`${id}-list`}
            aria-activedescendant={`${id}-${at}`}
            aria-label={text.pickers.search(name)}
            placeholder={text.common.search}
            className="mb-1.5 min-h-9 w-full rounded-xl bg-sunken px-3 text-sm outline-none placeholder:text-faint max-md:min-h-11"
          />
        )}
        {open && (
          <div
            id={`${id}-list`}
            role="listbox"
            tabIndex={-1}
            aria-label={name}
            aria-activedescendant={`${id}-${at}`}
            className="max-h-72 overflow-y-auto outline-none"
          >
            {shown.map((option, index) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the list handles the keys
              <div
                key={option.id}
                id={`${id}-${index}`}
                role="option"
                tabIndex={-1}
                aria-selected={option.id === chosen}
                ref={(element) => {
                  if (index === at) element?.scrollIntoView({ block: 'nearest' })
                }}
                onClick={() => take(option)}
                className={clsx(
                  'flex min-h-9 cursor-pointer flex-col justify-center rounded-xl px-3 py-1.5 text-sm hover:bg-hover max-md:min-h-11',
                  index === at && 'bg-hover',
                )}
              >
                <span className={clsx('truncate', option.id === chosen && 'font-semibold text-accent')}>
                  {option.label}
                </span>
                {option.about && <span className="truncate text-xs text-faint">{option.about}</span>}
              </div>
            ))}
            {!shown.length && (
              <p className="px-3 py-2 text-sm text-muted">{failed ? text.pickers.failed : text.pickers.none}</p>
            )}
          </div>
        )}
      </div>
    </>
  )
}
