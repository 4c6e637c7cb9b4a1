"""Names that trainlaunch keeps for itself in every target; a job that takes one is told so."""

LABEL_PREFIX = "dev.trainlaunch."  # engine labels: a run is found again by them
KUBERNETES_LABEL_PREFIX = "trainlaunch.dev/"
CLUSTER_HOME = "/trainlaunch"  # a volume for home and caches in Kubernetes rendered files before format 3
KUEUE_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
KUEUE_PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"  # goes before the pod's own class
SECRETS_FOLDER = "/run/secrets"  # where a container's secrets lie that it sees as files, as with Docker's own
PREFLIGHT_PREFIX = "tl_"  # the preflight's own shell variables; it sets them before the job starts
PLAN_VARIABLE = "TRAINLAUNCH_PLAN"  # of a container: what the preflight and the health command know of the job
HEADER_START = "# Rendered by trainlaunch from "  # the first line of every rendered file begins so
