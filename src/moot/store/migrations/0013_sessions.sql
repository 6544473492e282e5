-- Whose an outside agent's session is: what a run of ours has said in it is here already.
CREATE INDEX run_session ON run (agent_session_id) WHERE agent_session_id IS NOT NULL;
